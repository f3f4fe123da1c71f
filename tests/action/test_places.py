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
            "apps/shop/evals/b.test.yaml": suite("p", "q"),
            "apps/shop/targets.yaml": mock("no"),
            **{f"nasty/{name}": suite("n") for name in NASTY},
            "nasty/targets.yaml": mock("no"),
        }
        nested = {"uses": "actions/checkout@v4", "with": {"path": "code/nested"}}
        steps = (
            uses("mistakes", evals="bad", comment="never", results_dir="out/1"),
            uses("checked", evals="good", validate_only="true", comment="never", results_dir="out/2"),
            uses("check-fails", evals="bad", validate_only="true", comment="never", results_dir="out/3"),
            uses("folder", working_directory="apps/shop", comment="never", results_dir="../../out/4"),
            nested,
            uses("nested", working_directory="code/nested/apps/shop", comment="never", results_dir="out"),
            uses("nasty", evals="nasty/", comment="never", results_dir="out/6"),
        )
        return play(folder, files, *steps)

    return once("places", scenario)


@pytest.mark.parametrize("step_id", ["mistakes", "check-fails"])
def test_mistakes_in_documents_stand_on_their_lines(outcome: Outcome, step_id: str) -> None:
    step = outcome.steps[step_id]
    assert (step.result, step.outputs["verdict"]) == ("failure", "invalid")
    assert [(each.file, each.line, each.column) for each in step.errors[:2]] == [
        ("bad/a.test.yaml", 5, MISTAKES.splitlines()[4].index("usr") + 1),
        ("bad/a.test.yaml", 7, MISTAKES.splitlines()[6].index("tpye") + 1),
    ]
    assert "AV205" in step.summary


# DEFECT: a run whose documents are wrong has one more error, of no file: "the documents have errors".
@pytest.mark.xfail(reason="the reason is said once more, of no file")
def test_mistakes_are_all_that_is_said(outcome: Outcome) -> None:
    assert len(outcome.steps["mistakes"].errors) == 2


def test_documents_alone_can_be_checked(outcome: Outcome) -> None:
    step = outcome.steps["checked"]
    assert (step.result, step.outputs["verdict"], step.annotations) == ("success", "pass", ())
    assert (step.outputs["total"], step.outputs["results"]) == ("0", "")
    assert json.loads(outcome.file("out/2/plan.json"))["cases"]


def test_nobody_is_asked_when_documents_are_wrong_or_only_checked(outcome: Outcome) -> None:
    assert not (outcome.workspace / "asked").exists()


@pytest.mark.parametrize("step_id", ["folder", "nested"])
def test_paths_are_the_repository_s(outcome: Outcome, step_id: str) -> None:
    step = outcome.steps[step_id]
    assert [(each.file, each.line) for each in step.errors] == [
        ("apps/shop/evals/b.test.yaml", evaluator_line(0)),
        ("apps/shop/evals/b.test.yaml", evaluator_line(1)),
    ]
    assert "/blob/" in step.summary
    assert "/apps/shop/evals/b.test.yaml#L" in step.summary
    assert "code/nested" not in step.summary


def test_results_lie_in_the_working_directory(outcome: Outcome) -> None:
    assert outcome.steps["folder"].outputs["results"].endswith("/out/4/results.jsonl")
    assert (outcome.workspace / "code/nested/apps/shop/out/results.jsonl").exists()


def test_nasty_names_arrive_unharmed(outcome: Outcome) -> None:
    step = outcome.steps["nasty"]
    assert step.missed == ()
    assert {each.file for each in step.errors} == {f"nasty/{name}" for name in NASTY}
    assert step.of("warning") == ()
    assert {each.line for each in step.errors} == {evaluator_line(0)}
