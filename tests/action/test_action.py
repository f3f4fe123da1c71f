"""What a workflow sees of the action: annotations, outputs, the summary, and whether the step failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.action.conftest import Once
from tests.action.evals import evaluator_line, mock, suite
from tests.action.events import push
from tests.action.rig import TOKEN, Outcome, play, uses
from tests.action.steps import Annotation
from tests.support import REPOSITORY

pytestmark = pytest.mark.act

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
COUNTS = (9, 10, 60)


@pytest.fixture(scope="module")
def passing(once: Once) -> Outcome:
    def scenario(folder: Path) -> Outcome:
        return play(folder, {"evals/a.test.yaml": suite("a", "b"), "targets.yaml": mock()}, uses(), LATER_STEP)

    return once("passing", scenario)


def test_run_that_passes(passing: Outcome) -> None:
    step = passing.agentv
    assert (step.result, step.annotations, step.missed) == ("success", (), ())
    assert step.summary.startswith("## ✅ Evaluations: passed\n")
    assert "2 cases: 2 passed, 0 failed, 0 errors" in step.summary


def test_outputs_are_those_of_action_yml_and_later_steps_find_the_files(passing: Outcome) -> None:
    declared = yaml.safe_load((REPOSITORY / "action.yml").read_text("utf-8"))["outputs"]
    outputs = dict(passing.agentv.outputs)
    assert outputs.keys() == declared.keys()
    assert {name: Path(outputs.pop(name)).name for name in FILES} == FILES
    assert outputs == {"verdict": "pass", **FIGURES, "cost-usd": ""}
    assert json.loads(passing.file("outputs.json")) == dict(passing.agentv.outputs)
    assert passing.steps["later"].log == ("success",)


def test_files_lie_in_the_folder_for_results(passing: Outcome) -> None:
    names = {path.name for path in (passing.workspace / "agentv-results").iterdir()}
    assert names == {*FILES.values(), "run.json", "comment.md"}


def test_comment_is_made_with_the_token_and_as_github_describes_it(passing: Outcome) -> None:
    github = passing.github
    assert github.violations == []
    assert {call.token for call in github.calls} == {TOKEN}
    assert [(call.method, call.path, call.status) for call in github.writes()] == [
        ("POST", "/repos/acme/demo/issues/7/comments", 201)
    ]
    (comment,) = github.comments
    assert comment.body.startswith("<!-- agentv-ci:Evals/evals -->\n## ✅ Evaluations: passed\n")
    assert comment.body == passing.file("agentv-results/comment.md")


@pytest.fixture(scope="module")
def failing(once: Once) -> Outcome:
    """As many cases fail as the step is called."""

    def scenario(folder: Path) -> Outcome:
        files = {f"evals/{count}.test.yaml": suite(*(f"case-{n}" for n in range(count))) for count in COUNTS}
        steps = [
            uses(f"fails-{count}", evals=f"evals/{count}.test.yaml", comment="never", results_dir=f"out/{count}")
            for count in COUNTS
        ]
        return play(folder, {**files, "targets.yaml": mock("no")}, *steps)

    return once("failing", scenario)


@pytest.mark.parametrize("count", COUNTS)
def test_failures_are_shown_within_github_s_limits(failing: Outcome, count: int) -> None:
    step = failing.steps[f"fails-{count}"]
    assert (step.result, step.outputs["failed"], step.outputs["verdict"]) == ("failure", str(count), "fail")
    assert step.shown == step.annotations, "GitHub shows all that is said"
    assert len(step.errors) == min(count, 9), "the tenth is the runner's own"
    assert {each.file for each in step.errors} == {f"evals/{count}.test.yaml"}
    assert [each.line for each in step.errors] == [evaluator_line(place) for place in range(len(step.errors))]
    assert [each.title for each in step.errors] == [f"case-{n}: fail 0.000" for n in range(len(step.errors))]
    assert [each.message.partition(" more errors")[0] for each in step.notices] == (
        [str(count - 9)] if count > 10 else ["1 more error: see the job summary and the reports"] * (count > 9)
    )
    assert f"{count} failed" in step.summary


def test_every_failure_is_in_the_summary(failing: Outcome) -> None:
    summary = failing.steps["fails-60"].summary
    assert [n for n in range(60) if f"case-{n}`" not in summary] == []
    assert "https://github.com/acme/demo/blob/" in summary


@pytest.fixture(scope="module")
def wishes(once: Once) -> Outcome:
    """Runs that do not pass, for a reason each."""

    def scenario(folder: Path) -> Outcome:
        targets = json.loads(mock("no"))
        targets["targets"].append({"name": "broken", "provider": "mock", "error": {"kind": "auth"}})
        files = {
            "evals/a.test.yaml": suite("a"),
            "bad.test.yaml": "evalcases: 3\n",
            "targets.yaml": json.dumps(targets),
        }
        steps = (
            uses("errors-failed", fail_on="errors", results_dir="out/1"),
            uses("errors-errored", fail_on="errors", target="broken", results_dir="out/2"),
            uses("never-invalid", fail_on="never", evals="bad.test.yaml", results_dir="out/3", annotations="none"),
        )
        return play(folder, files, *steps, event=push, event_name="push")

    return once("wishes", scenario)


@pytest.mark.parametrize(
    ("step_id", "verdict", "result"),
    [
        ("errors-failed", "fail", "success"),
        ("errors-errored", "error", "failure"),
        ("never-invalid", "invalid", "failure"),
    ],
)
def test_fail_on_decides_whether_the_step_fails(wishes: Outcome, step_id: str, verdict: str, result: str) -> None:
    step = wishes.steps[step_id]
    assert (step.outputs["verdict"], step.result) == (verdict, result)


def test_case_that_fails_is_an_annotation_on_the_line_of_its_evaluator(wishes: Outcome) -> None:
    step = wishes.steps["errors-failed"]
    message = "says-yes: does not contain 'yes'\ntarget default"
    assert step.annotations == (
        Annotation("error", message, "evals/a.test.yaml", evaluator_line(0), title="a: fail 0.000"),
    )


def test_case_without_a_verdict_is_an_annotation_on_its_first_line(wishes: Outcome) -> None:
    (annotation,) = wishes.steps["errors-errored"].annotations
    assert (annotation.level, annotation.file, annotation.line) == ("error", "evals/a.test.yaml", 3)
    assert annotation.title == "a: error"


def test_annotations_can_be_left_out(wishes: Outcome) -> None:
    assert wishes.steps["never-invalid"].annotations == ()
    assert "AV203" in wishes.steps["never-invalid"].summary
