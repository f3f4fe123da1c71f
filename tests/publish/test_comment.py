"""The comment: what it says, what it remembers, and how it is found again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.contracts.action import PastRun
from agentv_ci.publish.comment import LIMIT, MAX_RUNS, Comment, history_of
from tests.publish.workflows import FORK, PULL_REQUEST, past


def comment(run: PastRun | None = None, *, key: str = "Evals/evals", body: str = "## Passed") -> Comment:
    return Comment(key, lambda limit: body[:limit], run or past(), PULL_REQUEST)


def test_begins_with_its_marker_and_ends_with_where_it_is_from() -> None:
    said = comment().text(None)
    assert said.startswith("<!-- agentv-ci:Evals/evals -->\n## Passed\n")
    assert "`Evals/evals` · [run 5](https://github.com/acme/demo/actions/runs/5) · 1111111" in said
    assert "<details>" not in said


def test_attempts_are_told_apart() -> None:
    again = replace(comment(), workflow=replace(PULL_REQUEST, run_attempt=2))
    assert "runs/5), attempt 2 ·" in again.text(None)


def test_of_another_run_it_says_whose_words_they_are() -> None:
    of_fork = replace(comment(), workflow=replace(FORK, event="workflow_run"))
    assert "fork's run, whose author controls the results" in of_fork.text(None)
    of_branch = replace(comment(), workflow=replace(PULL_REQUEST, event="workflow_run"))
    assert "fork" not in of_branch.text(None)


def test_remembers_earlier_runs() -> None:
    first = comment(past(1, mean=0.5, cost_usd=0.01)).text(None)
    second = comment(past(2, verdict="pass")).text(first)
    third = comment(past(3)).text(second)
    assert [each.run_id for each in history_of(third)] == [3, 2, 1]
    assert "<summary>The last 3 runs</summary>" in third
    row = "| [2030-01-02 03:04](https://github.com/acme/demo/actions/runs/1) | 1111111 | fail | 1/2 | 0.500 | $0.0100 |"
    assert row in third


def test_another_attempt_takes_the_place_of_the_first() -> None:
    first = comment(past(1)).text(None)
    again = comment(past(1, attempt=2)).text(first)
    assert [(each.run_id, each.attempt) for each in history_of(again)] == [(1, 2)]


def test_forgets_what_is_long_ago() -> None:
    said = None
    for number in range(1, 30):
        said = comment(past(number)).text(said)
    assert said is not None
    assert [each.run_id for each in history_of(said)] == [*range(29, 29 - MAX_RUNS, -1)]


def test_later_run_stays() -> None:
    later = comment(past(9)).text(None)
    assert comment(past(8)).is_older_than(later)
    assert not comment(past(9)).is_older_than(later)
    assert not comment(past(8)).is_older_than("no history")


@pytest.mark.parametrize(
    "kept",
    [
        "{",
        "{}",
        '{"runs": [{"run_id": 1}]}',
        json.dumps({"runs": [{**past().model_dump(), "sha": "<b>"}]}),
        json.dumps({"runs": [{**past().model_dump(), "at": "now --> <b>"}]}),
        json.dumps({"runs": [{**past().model_dump(), "passed": "many"}]}),
        json.dumps({"runs": [{**past().model_dump(), "verdict": "@octocat"}]}),
    ],
)
def test_what_is_not_its_own_is_forgotten(kept: str) -> None:
    assert history_of(f"x\n<!-- agentv-ci:history {kept} -->\n") == ()


def test_longest_text_fits() -> None:
    before = None
    for number in range(1, MAX_RUNS + 3):
        before = comment(past(number), body="x" * LIMIT).text(before)
        assert len(before) <= LIMIT


@given(st.text())
def test_markers_end_where_they_should(key: str) -> None:
    marker = comment(key=key).marker
    assert "--" not in marker[4:-3]
    assert ">" not in marker[:-1]
    assert "\n" not in marker


@given(st.text(), st.text())
def test_keys_have_markers_of_their_own(one: str, other: str) -> None:
    assert (comment(key=one).marker == comment(key=other).marker) == (one == other)
