"""The action in a workflow: outputs, files, annotations, the summary, the comment, and whether the step fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.action.conftest import Once
from tests.action.evals import agent, evaluator_line, mock, suite
from tests.action.rig import TOKEN, Outcome, play, uses
from tests.support import REPOSITORY

pytestmark = [pytest.mark.act, pytest.mark.slow]

FILES = {
    "results": "results.jsonl",
    "report": "results.report.json",
    "junit": "junit.xml",
    "html": "report.html",
    "plan": "plan.json",
}
FIGURES = {"passed": "2", "failed": "0", "errored": "0", "total": "2", "pass-rate": "1.0", "mean-score": "1.0"}
LATER_STEP = {
    "id": "later",
    "shell": "bash",
    "env": {
        "OUTPUTS": "${{ toJSON(steps.agentv.outputs) }}",
        "OUTCOME": "${{ steps.agentv.outcome }}",
        **{name.upper(): f"${{{{ steps.agentv.outputs.{name} }}}}" for name in FILES},
    },
    "run": """\
printf '%s' "$OUTPUTS" > outputs.json
ls "$RESULTS" "$REPORT" "$JUNIT" "$HTML" "$PLAN" > /dev/null
echo "$OUTCOME"
""",
}


@pytest.fixture(scope="module")
def passing(once: Once) -> Outcome:
    def scenario(folder: Path) -> Outcome:
        return play(folder, {"evals/a.test.yaml": suite("a", "b"), "targets.yaml": mock()}, uses(), LATER_STEP)

    return once("passing", scenario)


def test_passing_run(passing: Outcome) -> None:
    step = passing.agentv
    assert (step.result, step.annotations, step.missed) == ("success", (), ())
    assert step.summary.startswith("## ✅ Evaluations: passed\n")
    assert "2 cases: 2 passed, 0 failed, 0 errors" in step.summary


def test_outputs_and_files(passing: Outcome) -> None:
    declared = yaml.safe_load((REPOSITORY / "action.yml").read_text("utf-8"))["outputs"]
    outputs = dict(passing.agentv.outputs)
    assert outputs.keys() == declared.keys()
    assert {name: Path(outputs.pop(name)).name for name in FILES} == FILES
    assert outputs == {"verdict": "pass", **FIGURES, "cost-usd": ""}
    assert json.loads(passing.file("outputs.json")) == dict(passing.agentv.outputs)
    assert passing.steps["later"].log == ("success",)
    names = {path.name for path in (passing.workspace / "agentv-results").iterdir()}
    assert names == {*FILES.values(), "run.json", "comment.md"}


def test_comment_is_written_with_the_token(passing: Outcome) -> None:
    github = passing.github
    assert github.violations == []
    assert {call.token for call in github.calls} == {TOKEN}
    assert [(call.method, call.status) for call in github.writes()] == [("POST", 201)]
    (comment,) = github.comments
    assert comment.body.startswith("<!-- agentv-ci:Evals/evals -->\n## ✅ Evaluations: passed\n")
    assert comment.body == passing.file("agentv-results/comment.md")


SPECIAL = ("a,b:c %25.test.yaml", "🙂 né.test.yaml", "two\nlines.test.yaml")
WRONG = suite("a").replace("role: user", "role: usr").replace("says-yes, type", "says-yes, tpye")
NESTED = "code/nested/apps/shop"


@pytest.fixture(scope="module")
def failing(once: Once) -> Outcome:
    """Steps that do not pass, for a reason each, in folders of the workspace."""

    def scenario(folder: Path) -> Outcome:
        files = {
            "many/a.test.yaml": suite(*(f"case-{n}" for n in range(60))),
            "many/targets.yaml": mock("no"),
            "wrong/a.test.yaml": WRONG,
            "good/a.test.yaml": suite("a"),
            "targets.yaml": agent("touch asked; echo no"),
            **{f"apps/shop/evals/{name}": suite("a") for name in SPECIAL},
            "apps/shop/b.test.yaml": suite("p", "q"),
            "apps/shop/targets.yaml": mock("no"),
        }
        steps = (
            uses("many", evals="many", results_dir="out/1"),
            uses("reported", evals="many", fail_on="errors", annotations="none", comment="never", results_dir="out/2"),
            uses("wrong", evals="wrong", fail_on="never", comment="never", results_dir="out/3"),
            uses("checked", evals="good", validate_only="true", comment="never", results_dir="out/4"),
            uses("special", working_directory="apps/shop", comment="never", results_dir="../../out/5"),
            {"uses": "actions/checkout@v4", "with": {"path": "code/nested"}},
            uses("nested", working_directory=NESTED, evals="b.test.yaml", comment="never", results_dir="out"),
        )
        return play(folder, files, *steps)

    return once("failing", scenario)


def test_failures_within_the_limits_of_github(failing: Outcome) -> None:
    step = failing.steps["many"]
    assert (step.result, step.outputs["failed"], step.outputs["verdict"]) == ("failure", "60", "fail")
    assert step.shown == step.annotations
    assert [(each.file, each.line, each.title) for each in step.errors] == [
        ("many/a.test.yaml", evaluator_line(n), f"case-{n}: fail 0.000") for n in range(9)
    ]
    assert step.errors[0].message == "says-yes: does not contain 'yes'\ntarget default"
    assert [each.message for each in step.notices] == ["51 more errors: see the job summary and the reports"]
    assert [n for n in range(60) if f"case-{n}`" not in step.summary] == []
    assert "https://github.com/acme/demo/blob/" in step.summary


def test_fail_on_errors_and_no_annotations(failing: Outcome) -> None:
    step = failing.steps["reported"]
    assert (step.result, step.outputs["verdict"], step.annotations) == ("success", "fail", ())


def test_errors_in_documents(failing: Outcome) -> None:
    step = failing.steps["wrong"]
    assert (step.result, step.outputs["verdict"]) == ("failure", "invalid")
    assert [(each.file, each.line, each.column) for each in step.errors] == [
        ("wrong/a.test.yaml", 5, WRONG.splitlines()[4].index("usr") + 1),
        ("wrong/a.test.yaml", 7, WRONG.splitlines()[6].index("tpye") + 1),
    ]
    assert "AV205" in step.summary


def test_validate_only(failing: Outcome) -> None:
    step = failing.steps["checked"]
    assert (step.result, step.outputs["verdict"], step.annotations) == ("success", "pass", ())
    assert (step.outputs["total"], step.outputs["results"]) == ("0", "")
    assert json.loads(failing.file("out/4/plan.json"))["cases"]
    assert not (failing.workspace / "asked").exists()


def test_special_names_in_the_working_directory(failing: Outcome) -> None:
    step = failing.steps["special"]
    assert step.missed == ()
    assert {(each.file, each.line) for each in step.errors} == {
        (f"apps/shop/evals/{name}", evaluator_line(0)) for name in SPECIAL
    }
    assert (failing.workspace / "out/5/results.jsonl").exists()


def test_checkout_below_the_workspace(failing: Outcome) -> None:
    step = failing.steps["nested"]
    assert [(each.file, each.line) for each in step.errors] == [
        ("apps/shop/b.test.yaml", evaluator_line(place)) for place in (0, 1)
    ]
    assert "/apps/shop/b.test.yaml#L" in step.summary
    assert "code/nested" not in step.summary
    assert step.outputs["results"].endswith("/code/nested/apps/shop/out/results.jsonl")
