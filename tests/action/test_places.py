"""Annotations stand on lines of the user's files, wherever these are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.action.conftest import Once
from tests.action.evals import agent, evaluator_line, mock, suite
from tests.action.rig import Outcome, play, uses

pytestmark = pytest.mark.act

NASTY = ("a,b:c %25.test.yaml", "🙂 né.test.yaml", "two\nlines.test.yaml")
MISTAKES = suite("a").replace("role: user", "role: usr").replace("says-yes, type", "says-yes, tpye")


@pytest.fixture(scope="module")
def outcome(once: Once) -> Outcome:
    def scenario(folder: Path) -> Outcome:
        files = {
            "bad/a.test.yaml": MISTAKES,
            "good/a.test.yaml": suite("a"),
            "targets.yaml": agent("touch asked; echo no"),
            **{f"apps/shop/evals/{name}": suite("a") for name in NASTY},
            "apps/shop/b.test.yaml": suite("p", "q"),
            "apps/shop/targets.yaml": mock("no"),
        }
        steps = (
            uses("mistakes", evals="bad", comment="never", results_dir="out/1"),
            uses("checked", evals="good", validate_only="true", comment="never", results_dir="out/2"),
            uses("folder", working_directory="apps/shop", comment="never", results_dir="../../out/3"),
            {"uses": "actions/checkout@v4", "with": {"path": "code/nested"}},
            uses(
                "nested",
                working_directory="code/nested/apps/shop",
                evals="b.test.yaml",
                comment="never",
                results_dir="out",
            ),
        )
        return play(folder, files, *steps)

    return once("places", scenario)


def test_mistakes_in_documents_stand_on_their_lines(outcome: Outcome) -> None:
    step = outcome.steps["mistakes"]
    assert (step.result, step.outputs["verdict"]) == ("failure", "invalid")
    assert [(each.file, each.line, each.column) for each in step.errors[:2]] == [
        ("bad/a.test.yaml", 5, MISTAKES.splitlines()[4].index("usr") + 1),
        ("bad/a.test.yaml", 7, MISTAKES.splitlines()[6].index("tpye") + 1),
    ]
    assert "AV205" in step.summary


def test_mistakes_are_all_that_is_said(outcome: Outcome) -> None:
    assert len(outcome.steps["mistakes"].errors) == 2


def test_documents_alone_can_be_checked(outcome: Outcome) -> None:
    step = outcome.steps["checked"]
    assert (step.result, step.outputs["verdict"], step.annotations) == ("success", "pass", ())
    assert (step.outputs["total"], step.outputs["results"]) == ("0", "")
    assert json.loads(outcome.file("out/2/plan.json"))["cases"]


def test_nobody_is_asked_when_documents_are_wrong_or_only_checked(outcome: Outcome) -> None:
    assert not (outcome.workspace / "asked").exists()


def test_paths_are_those_of_the_repository_that_is_checked_out_below_the_workspace(outcome: Outcome) -> None:
    step = outcome.steps["nested"]
    assert [(each.file, each.line) for each in step.errors] == [
        ("apps/shop/b.test.yaml", evaluator_line(0)),
        ("apps/shop/b.test.yaml", evaluator_line(1)),
    ]
    assert "/blob/" in step.summary
    assert "/apps/shop/b.test.yaml#L" in step.summary
    assert "code/nested" not in step.summary


def test_nasty_names_below_the_working_directory_arrive_unharmed(outcome: Outcome) -> None:
    step = outcome.steps["folder"]
    assert step.missed == ()
    assert {each.file for each in step.annotations} == {f"apps/shop/evals/{name}" for name in NASTY}
    assert [(each.level, each.line) for each in step.annotations] == [("error", evaluator_line(0))] * len(NASTY)


def test_results_lie_in_the_working_directory(outcome: Outcome) -> None:
    assert (outcome.workspace / "out/3/results.jsonl").exists()
    assert (outcome.workspace / "code/nested/apps/shop/out/results.jsonl").exists()
    assert outcome.steps["nested"].outputs["results"].endswith("/code/nested/apps/shop/out/results.jsonl")
