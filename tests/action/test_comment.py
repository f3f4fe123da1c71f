"""The one comment on a pull request: made once, updated in place, and never somebody else's."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.action.conftest import Once
from tests.action.evals import mock, suite
from tests.action.events import pull_request
from tests.action.github_api import BOT, LONGEST_COMMENT, Failure, FakeGitHub
from tests.action.rig import CHECKOUT, Outcome, Rig, play, uses

pytestmark = pytest.mark.act

MARKER = "<!-- agentv-ci:Evals/evals -->"
STRANGER_S = f"{MARKER}\nAll is well."
OTHER_JOB_S = "<!-- agentv-ci:other -->\nAll is well."
LONG = 120
"""Cases whose questions and answers have 16,000 bytes each: together more than a summary may have."""


@pytest.fixture(scope="module")
def twice(once: Once) -> Outcome:
    """Two runs on a pull request with many comments; the first run fails, the second one passes."""

    def scenario(folder: Path) -> Outcome:
        github = FakeGitHub(viewer=BOT)
        for number in range(120):
            github.plant(f"comment {number}")
        github.plant(STRANGER_S)
        github.plant(OTHER_JOB_S, author=BOT)
        files = {"evals/a.test.yaml": suite("a", "b"), "good.yaml": mock(), "bad.yaml": mock("no")}
        rig = Rig(folder, files, github, environ={"GITHUB_RUN_ID": "41"})
        rig.prepare()
        rig.run({"steps": [CHECKOUT, uses(targets="bad.yaml")]}, pull_request(rig.head))
        github.plant("thanks")
        rig = replace(rig, environ={"GITHUB_RUN_ID": "42"})
        return rig.run({"steps": [CHECKOUT, uses(targets="good.yaml")]}, pull_request(rig.head))

    return once("twice", scenario)


def test_second_run_updates_the_comment_of_the_first(twice: Outcome) -> None:
    assert [(call.method, call.status) for call in twice.github.writes()] == [("POST", 201), ("PATCH", 200)]
    assert twice.github.violations == []
    (own,) = [each for each in twice.github.comments if each.author == BOT and each.body.startswith(MARKER)]
    assert "## ✅ Evaluations: passed" in own.body
    assert own.body == twice.github.writes()[-1].body["body"]


def test_comment_remembers_the_runs_before(twice: Outcome) -> None:
    (own,) = [each for each in twice.github.comments if each.author == BOT and each.body.startswith(MARKER)]
    rows = re.findall(r"^\| \[.*\]\(.*/actions/runs/(\d+)\) \| \w+ \| (\w+) \| (\S+) \|", own.body, re.MULTILINE)
    assert rows == [("42", "pass", "2/2"), ("41", "fail", "0/2")]


def test_comments_of_others_are_left_alone(twice: Outcome) -> None:
    bodies = [each.body for each in twice.github.comments if not each.body.startswith("comment ")]
    assert bodies[:2] == [STRANGER_S, OTHER_JOB_S]
    assert bodies[3:] == ["thanks"]
    assert sum(each.body.startswith("comment ") for each in twice.github.comments) == 120


@pytest.fixture(scope="module")
def matrix(once: Once) -> Outcome:
    def scenario(folder: Path) -> Outcome:
        files = {"evals/a.test.yaml": suite("a"), "targets-one.yaml": mock(), "targets-two.yaml": mock("no")}
        step = uses(targets="targets-${{ matrix.model }}.yaml", comment_key="${{ matrix.model }} -->")
        github = FakeGitHub(viewer=None)
        return play(folder, files, step, github=github, job={"strategy": {"matrix": {"model": ["one", "two"]}}})

    return once("matrix", scenario)


def test_jobs_of_a_matrix_have_a_comment_each(matrix: Outcome) -> None:
    assert matrix.github.violations == []
    assert [call.status for call in matrix.github.writes()] == [201, 201]
    titles = {each.body.splitlines()[1] for each in matrix.github.comments}
    assert titles == {"## ✅ Evaluations: passed", "## ❌ Evaluations: not passed"}
    assert {step_id: step.result for step_id, step in matrix.steps.items() if step_id.endswith("agentv")} == {
        "one.agentv": "success",
        "two.agentv": "failure",
    }


def test_key_does_not_end_the_marker(matrix: Outcome) -> None:
    first_lines = {each.body.splitlines()[0] for each in matrix.github.comments}
    assert {line.count("-->") for line in first_lines} == {1}
    assert all(line.endswith(" -->") for line in first_lines)
    assert len(first_lines) == 2


@pytest.fixture(scope="module")
def unlucky(once: Once) -> Outcome:
    """GitHub fails once before it answers, and once after it has made the comment; all that is said is long."""

    def scenario(folder: Path) -> Outcome:
        failures = [
            Failure(502, method="GET"),
            Failure(502, method="POST", path="/repos/acme/demo/issues/7/comments", done=True),
        ]
        files = {
            "evals/a.test.yaml": suite(*(f"case-{n}" for n in range(LONG)), question="🙂" * 4_000),
            "targets.yaml": mock("🙂 ```` </details> " + "🙂" * 4_000),
        }
        return play(folder, files, uses(fail_on="never"), github=FakeGitHub(failures=failures))

    return once("unlucky", scenario)


def test_failing_api_is_asked_again_and_no_comment_is_made_twice(unlucky: Outcome) -> None:
    assert unlucky.github.failures == []
    assert [call.status for call in unlucky.github.calls if call.method == "GET"] == [502, 200, 200]
    assert [(call.method, call.status) for call in unlucky.github.writes()] == [("POST", 502), ("PATCH", 200)]
    assert len(unlucky.github.comments) == 1
    assert (unlucky.agentv.result, unlucky.agentv.outputs["verdict"]) == ("success", "fail")
    assert [each for each in unlucky.agentv.notices if "comment" in each.message] == []


def test_many_failures_are_shown_within_github_s_limits(unlucky: Outcome) -> None:
    step = unlucky.agentv
    assert step.shown == step.annotations
    assert [each.title for each in step.errors] == [f"case-{n}: fail 0.000" for n in range(9)]
    assert [each.message.partition(" more errors")[0] for each in step.notices] == [str(LONG - 9)]


def test_long_comment_and_summary_are_cut_in_good_order(unlucky: Outcome) -> None:
    (comment,) = unlucky.github.comments
    summary = unlucky.agentv.summary
    assert 30_000 < len(comment.body) <= 60_000 < LONGEST_COMMENT
    assert 700_000 < len(summary.encode()) <= 1_000_000
    assert f"{LONG} cases: 0 passed, {LONG} failed" in comment.body
    for text in (comment.body, summary):
        opened, closed = (
            [line for line in text.splitlines() if line.startswith(tag)] for tag in ("<details>", "</details>")
        )
        assert len(opened) == len(closed)
        assert "Left out to stay within" in text
    assert comment.body.rstrip().endswith("-->")
