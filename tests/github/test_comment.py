"""The text of the comment, the runs it stores, and how it is found again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv_ci.contracts.action import ActionRun, PastRun
from agentv_ci.github.comment import LIMIT, Comment, history_of
from agentv_ci.report.job import Job, text
from agentv_ci.report.view import NO_LINKS
from tests.github.workflows import FORK, PULL_REQUEST, past
from tests.support.markdown import MARKDOWN_ATTACKS, MARKUP, MarkdownPage
from tests.support.runs import reported, row

FORGED = json.dumps({"runs": [{**past(9 * 10**17).model_dump(), "verdict": "pass", "passed": 99, "total": 99}]})
FORGED_LINE = f"<!-- agentv-ci:history {FORGED} -->"


def comment(run: PastRun | None = None, *, key: str = "Evals/evals", body: str = "## Passed") -> Comment:
    return Comment(key, lambda limit, _: body[:limit], run or past(), PULL_REQUEST)


def of_job(**given: Any) -> str:
    """The first comment of a job."""
    plain: dict[str, Any] = {"reported": None, "diagnostics": None, "changes": None}
    run = ActionRun(exit_code=0, verdict="fail", root="/")
    job = Job(**{"run": run, **plain, "links": NO_LINKS, "relative": str, **given})
    return Comment("k", lambda limit, _: text(job, limit), past(), PULL_REQUEST).text(None)


def test_marker_body_and_origin() -> None:
    said = comment().text(None)
    assert said.startswith("<!-- agentv-ci:Evals/evals -->\n## Passed\n")
    assert "`Evals/evals` · [run 5](https://github.com/acme/demo/actions/runs/5) · 1111111" in said
    assert "<details>" not in said


def test_second_attempt_is_named() -> None:
    again = replace(comment(), workflow=replace(PULL_REQUEST, run_attempt=2))
    assert "runs/5), attempt 2 ·" in again.text(None)


@pytest.mark.parametrize(("workflow", "is_marked"), [(FORK, True), (PULL_REQUEST, False)])
def test_comment_for_a_forks_run_is_marked(workflow: Any, is_marked: bool) -> None:
    said = replace(comment(), workflow=replace(workflow, event="workflow_run")).text(None)
    assert ("from a fork's run, whose author controls the results" in said) == is_marked


def test_earlier_runs_are_listed() -> None:
    first = comment(past(1, mean=0.5, cost_usd=0.01)).text(None)
    third = comment(past(3)).text(comment(past(2, verdict="pass")).text(first))
    assert [each.run_id for each in history_of(third)] == [3, 2, 1]
    assert "<summary>The last 3 runs</summary>" in third
    row = "| [2030-01-02 03:04](https://github.com/acme/demo/actions/runs/1) | 1111111 | fail | 1/2 | 0.500 | $0.0100 |"
    assert row in third


def test_second_attempt_replaces_the_first() -> None:
    again = comment(past(1, attempt=2)).text(comment(past(1)).text(None))
    assert [(each.run_id, each.attempt) for each in history_of(again)] == [(1, 2)]


def test_only_the_last_runs_are_stored_and_the_longest_text_fits() -> None:
    said = None
    for number in range(1, 14):
        said = comment(past(number), body="x" * LIMIT).text(said)
        assert len(said) <= LIMIT
    assert said is not None
    assert [each.run_id for each in history_of(said)] == [*range(13, 3, -1)]


def test_comment_of_a_later_run_is_kept() -> None:
    later = comment(past(9)).text(None)
    assert comment(past(8)).is_older_than(later)
    assert not comment(past(9)).is_older_than(later)
    assert not comment(past(8)).is_older_than("no history")


@pytest.mark.parametrize(
    "stored",
    [
        *("{", "{}", "[" * 99_999, '{"runs": [{"run_id": 1}]}'),
        *(
            json.dumps({"runs": [{**past().model_dump(), **wrong}]})
            for wrong in ({"sha": "<b>"}, {"at": "now --> <b>"}, {"passed": "many"}, {"verdict": "@octocat"})
        ),
    ],
    ids=lambda stored: stored[:20],
)
def test_invalid_history_is_ignored(stored: str) -> None:
    assert history_of(f"x\n<!-- agentv-ci:history {stored} -->\n") == ()
    assert history_of(f"x\n<!-- agentv-ci:history {stored}") == ()


@pytest.mark.parametrize(
    "stored", [{"cost_usd": 1e308, "mean": -1e308}, {"run_id": 0}, {"passed": -1, "total": 10**18}, {"sha": "0" * 64}]
)
def test_extreme_figures_in_the_history_are_shown(stored: Mapping[str, Any]) -> None:
    line = json.dumps({"runs": [{**past(1).model_dump(), **stored}] * 40})
    said = comment().text(f"<!-- agentv-ci:k -->\nx\n\n<!-- agentv-ci:history {line} -->\n")
    assert len(said) <= LIMIT
    assert MarkdownPage(said).tags <= MARKUP


@pytest.mark.parametrize(
    "field", ["candidate_answer", "reference_answer", "expected_outcome", "target", "eval_id", "suite", "error"]
)
def test_results_cannot_forge_the_history(field: str) -> None:
    forging = row("error" if field == "error" else "fail").model_copy(update={field: f"x\n{FORGED_LINE}\ny"})
    assert history_of(of_job(reported=reported([forging]))) == (past(),)


def test_reason_without_a_run_cannot_forge_the_history() -> None:
    run = ActionRun(exit_code=2, verdict="invalid", root="/", reason=f"x {FORGED_LINE}", hint=FORGED_LINE)
    assert history_of(of_job(run=run)) == (past(),)


@pytest.mark.parametrize("key", ["x" * 70_000, "😀" * 6_000])
def test_long_key_fits(key: str) -> None:
    assert len(comment(key=key).text(None)) <= LIMIT


@pytest.mark.parametrize("key", [*MARKDOWN_ATTACKS, "x-", "-", "--!>", "\udcff"])
def test_key_is_shown_as_text(key: str) -> None:
    page = MarkdownPage(comment(key=key).text(None))
    assert page.tags <= MARKUP
    assert all(each.startswith(" agentv-ci:") for each in page.comments)
    assert "@octocat" not in page.loose


@given(st.text())
def test_marker_is_one_html_comment(key: str) -> None:
    marker = comment(key=key).marker
    assert "--" not in marker[4:-3]
    assert ">" not in marker[:-1]
    assert "\n" not in marker


@given(st.text(), st.text())
def test_every_key_has_its_own_marker(one: str, other: str) -> None:
    assert (comment(key=one).marker == comment(key=other).marker) == (one == other)
