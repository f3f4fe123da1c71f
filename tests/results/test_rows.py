"""What a result row says of what happened."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.contracts.exchange import Grade, ProviderError, Response
from agentv_ci.contracts.plan import PlanGate, PlanSuite
from agentv_ci.contracts.results import EvaluatorResult, OutputMessage, ResultRow, ToolCall, Usage
from agentv_ci.contracts.targets import MockTarget
from agentv_ci.jsonschema.violations import violations
from agentv_ci.results.jsonl import encode
from agentv_ci.results.rows import Effort, Trial, failed_row, graded_row
from tests.evaluate.builders import DIGEST, plan_case
from tests.support import NOW

TRIAL = Trial(
    case=plan_case(conversation_id="talk", metadata={"team": "a"}),
    suite=PlanSuite(path="evals/a.yaml", dataset="greetings", gate=PlanGate()),
    target=OpenAITarget(name="gpt", provider="ollama", model="gpt-mock"),
    number=2,
    seed=7,
    dry_run=False,
)
EFFORT = Effort(attempts=2, requests=5, duration_ms=1234)
OUTCOME = EvaluatorResult(
    name="finds",
    type="contains",
    status="ok",
    score=1.0,
    weight=2.0,
    required=True,
    verdict="pass",
    hits=("it greets",),
    misses=(),
    reasoning="found",
    raw_response=None,
)
GRADE = Grade(1.0, "pass", ("it greets",), ("no name",), "finds: found", (OUTCOME,))
ANSWER = Response(
    answer="Hello!",
    messages=(
        OutputMessage(
            role="assistant",
            content=None,
            tool_calls=(ToolCall(tool="search", input={"q": 1}, output=[2]), ToolCall(tool="fetch")),
        ),
        OutputMessage(role="assistant", content="Hello!", tool_calls=(ToolCall(tool="search"),)),
    ),
    has_trace=True,
    model="mock-2030",
    usage=Usage(input_tokens=100, output_tokens=10, total_tokens=110, cached_tokens=20),
    requests=3,
    request={"prompt": "Say hello."},
)


def graded(answer: Response = ANSWER, grade: Grade = GRADE, **given: Any) -> ResultRow:
    return graded_row(given.pop("trial", TRIAL), EFFORT, answer, grade, **{"now": NOW, "include_trace": False, **given})


def record(row: ResultRow) -> dict[str, Any]:
    """Return a row as it is written, without what is absent."""
    data: dict[str, Any] = row.model_dump(mode="json", exclude_none=True)
    assert violations("result-v1", data) == []
    assert not data.pop("masked", False)
    return data


def test_an_answered_trial_is_told_in_full() -> None:
    assert record(graded()) == {
        "schema_version": 1,
        "timestamp": "2030-01-02T03:04:05.000Z",
        "eval_id": "one",
        "dataset": "greetings",
        "conversation_id": "talk",
        "suite": "evals/a.yaml",
        "target": "gpt",
        "provider": "ollama",
        "model": "mock-2030",
        "trial": 2,
        "trials": 1,
        "require": "majority",
        "seed": 7,
        "digest": DIGEST,
        "status": "ok",
        "verdict": "pass",
        "score": 1.0,
        "hits": ["it greets"],
        "misses": ["no name"],
        "reasoning": "finds: found",
        "candidate_answer": "Hello!",
        "evaluator_results": [
            {
                "name": "finds",
                "type": "contains",
                "status": "ok",
                "score": 1.0,
                "weight": 2.0,
                "required": True,
                "verdict": "pass",
                "hits": ["it greets"],
                "misses": [],
                "reasoning": "found",
            }
        ],
        "attempts": 2,
        "requests": 5,
        "duration_ms": 1234,
        "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, "cached_tokens": 20},
        "request": {"prompt": "Say hello."},
        "trace_summary": {
            "event_count": 3,
            "tool_names": ["fetch", "search"],
            "tool_calls_by_name": {"fetch": 1, "search": 2},
            "error_count": 0,
        },
        "cached": False,
        "source": {"path": "evals/a.yaml", "line": 3},
        "dry_run": False,
        "metadata": {"team": "a"},
        "input_messages": [],
        "expected_outcome": "It greets.",
        "reference_answer": "Hello!",
    }


def test_a_trial_without_an_answer_is_an_error_of_score_zero() -> None:
    error = ProviderError("rate_limit", "HTTP 429: slow down", status=429, requests=4)
    assert record(failed_row(TRIAL, EFFORT, error, now=NOW)) == {
        "schema_version": 1,
        "timestamp": "2030-01-02T03:04:05.000Z",
        "eval_id": "one",
        "dataset": "greetings",
        "conversation_id": "talk",
        "suite": "evals/a.yaml",
        "target": "gpt",
        "provider": "ollama",
        "trial": 2,
        "trials": 1,
        "require": "majority",
        "seed": 7,
        "digest": DIGEST,
        "status": "error",
        "verdict": "error",
        "score": 0.0,
        "hits": [],
        "misses": [],
        "reasoning": "",
        "candidate_answer": "",
        "evaluator_results": [],
        "error": "HTTP 429: slow down",
        "error_kind": "rate_limit",
        "attempts": 2,
        "requests": 5,
        "duration_ms": 1234,
        "request": {},
        "cached": False,
        "source": {"path": "evals/a.yaml", "line": 3},
        "dry_run": False,
        "metadata": {"team": "a"},
        "input_messages": [],
        "expected_outcome": "It greets.",
        "reference_answer": "Hello!",
    }


@pytest.mark.parametrize("verdict", ["pass", "borderline", "fail"])
def test_every_verdict_is_an_ok_row(verdict: Any) -> None:
    row = graded(grade=replace(GRADE, verdict=verdict))
    assert (row.status, row.verdict, row.error, row.error_kind) == ("ok", verdict, None, None)


def test_an_evaluator_that_broke_makes_an_error_of_what_the_others_scored() -> None:
    failed = {"name": "judge", "type": "llm_judge", "status": "error", "score": 0.0, "verdict": "error"}
    broken = OUTCOME.model_copy(update={**failed, "raw_response": "hm"})
    grade = Grade(0.9, "error", (), (), "", (OUTCOME, broken), error="evaluator 'judge': unreadable")
    row = graded(grade=grade)
    assert (row.status, row.verdict, row.score) == ("error", "error", 0.9)
    assert (row.error_kind, row.error) == ("evaluator", "evaluator 'judge': unreadable")
    assert (row.candidate_answer, row.evaluator_results[1].raw_response) == ("Hello!", "hm")


def test_the_whole_answer_is_kept_on_demand() -> None:
    assert record(graded(include_trace=True))["output_messages"] == [
        {
            "role": "assistant",
            "tool_calls": [{"tool": "search", "input": {"q": 1}, "output": [2]}, {"tool": "fetch"}],
        },
        {"role": "assistant", "content": "Hello!", "tool_calls": [{"tool": "search"}]},
    ]


def test_no_trace_is_no_summary_of_one() -> None:
    assert graded(replace(ANSWER, has_trace=False)).trace_summary is None


def test_no_tool_called_is_a_summary_of_nothing() -> None:
    summary = graded(replace(ANSWER, messages=(OutputMessage(role="assistant", content="Hello!"),))).trace_summary
    assert summary is not None
    assert (summary.event_count, summary.tool_names, summary.tool_calls_by_name) == (0, (), {})


def test_tokens_that_nobody_counted_are_absent_and_not_zero() -> None:
    row = graded(replace(ANSWER, usage=None))
    assert (row.usage, row.judge_usage) == (None, None)


def test_the_judges_tokens_are_counted_apart() -> None:
    usage = graded(
        grade=replace(GRADE, judge_usage=Usage(input_tokens=7, output_tokens=3, total_tokens=10))
    ).judge_usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.cached_tokens) == (7, 3, 10, None)


def test_a_dry_run_says_so_and_names_the_mock_as_the_provider() -> None:
    row = graded(trial=replace(TRIAL, dry_run=True))
    assert (row.dry_run, row.provider, row.target) == (True, "mock", "gpt")


def test_an_answer_that_a_secret_was_taken_out_of_says_so() -> None:
    assert graded(replace(ANSWER, masked=True)).masked


def test_a_mock_is_no_dry_run() -> None:
    row = graded(trial=replace(TRIAL, target=MockTarget(name="m", provider="mock")))
    assert (row.dry_run, row.provider) == (False, "mock")


def test_times_are_told_in_utc_with_milliseconds() -> None:
    moment = datetime(2030, 1, 2, 3, 4, 5, 678_912, tzinfo=UTC)
    assert graded(now=moment).timestamp == "2030-01-02T03:04:05.678Z"


def test_a_time_of_another_zone_is_told_in_utc() -> None:
    assert graded(now=NOW.astimezone(timezone(timedelta(hours=2)))).timestamp == "2030-01-02T03:04:05.000Z"


@pytest.mark.parametrize("include_trace", [True, False])
def test_a_row_is_read_back_as_it_was_written(include_trace: bool) -> None:
    row = graded(include_trace=include_trace)
    assert ResultRow.model_validate_json(encode(row), strict=False) == row
