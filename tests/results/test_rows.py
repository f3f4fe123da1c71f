"""Result rows of answers and errors."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from msgspec.structs import replace

from agentv_ci.contracts.api_targets import OpenAITarget
from agentv_ci.contracts.exchange import Grade, ProviderError, Response
from agentv_ci.contracts.plan import PlanGate, PlanSuite
from agentv_ci.contracts.results import EvaluatorResult, OutputMessage, ResultRow, ToolCall, Usage
from agentv_ci.contracts.targets import MockTarget
from agentv_ci.execute.provider_services import unwritable
from agentv_ci.jsonschema.violations import violations
from agentv_ci.results.files import row_of
from agentv_ci.results.jsonl import encode
from agentv_ci.results.rows import Effort, Trial, failed_row, graded_row, regraded_row, stored_response
from tests.evaluate.builders import plan_case
from tests.support import NOW
from tests.support.runs import DIGEST

TRIAL = Trial(
    case=plan_case(conversation_id="talk", metadata={"team": "a"}),
    suite=PlanSuite(path="evals/a.yaml", dataset="greetings", gate=PlanGate()),
    target=OpenAITarget(name="gpt", provider="ollama", model="gpt-mock"),
    number=2,
    seed=7,
    dry_run=False,
)
EFFORT = Effort(attempts=2, requests=5, duration_ms=1234)
FOUND = {
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
RESULT = EvaluatorResult.model_validate(FOUND)
GRADE = Grade(1.0, "pass", ("it greets",), ("no name",), "finds: found", (RESULT,))
CALLS = ({"tool": "search", "input": {"q": 1}, "output": [2]}, {"tool": "fetch"})
ANSWER = Response(
    answer="Hello!",
    messages=(
        OutputMessage(role="assistant", content=None, tool_calls=tuple(map(ToolCall.model_validate, CALLS))),
        OutputMessage(role="assistant", content="Hello!", tool_calls=(ToolCall(tool="search"),)),
    ),
    has_trace=True,
    model="mock-2030",
    usage=Usage(input_tokens=100, output_tokens=10, total_tokens=110, cached_tokens=20),
    requests=3,
    request={"prompt": "Say hello."},
)
OF_EVERY_ROW = {
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
    "threshold": 0.8,
    "attempts": 2,
    "requests": 5,
    "duration_ms": 1234,
    "cached": False,
    "masked": False,
    "source": {"path": "evals/a.yaml", "line": 3},
    "dry_run": False,
    "tags": [],
    "usage": {},
    "metadata": {"team": "a"},
    "input_messages": [],
    "expected_outcome": "It greets.",
    "reference_answer": "Hello!",
}


def graded(answer: Response = ANSWER, grade: Grade = GRADE, **given: Any) -> ResultRow:
    return graded_row(given.pop("trial", TRIAL), EFFORT, answer, grade, **{"now": NOW, "include_trace": False, **given})


def record(row: ResultRow) -> dict[str, Any]:
    """Return a row as it is written, without what is absent."""
    data: dict[str, Any] = row.model_dump(mode="json", exclude_none=True)
    assert violations("result-v1", data) == []
    return data


def test_row_of_an_answer() -> None:
    assert record(graded()) == {
        **OF_EVERY_ROW,
        "model": "mock-2030",
        "status": "ok",
        "verdict": "pass",
        "score": 1.0,
        "hits": ["it greets"],
        "misses": ["no name"],
        "reasoning": "finds: found",
        "candidate_answer": "Hello!",
        "evaluator_results": [FOUND],
        "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, "cached_tokens": 20},
        "request": {"prompt": "Say hello."},
        "trace_summary": {
            "event_count": 3,
            "tool_names": ["fetch", "search"],
            "tool_calls_by_name": {"fetch": 1, "search": 2},
            "error_count": 0,
        },
    }


def test_row_of_an_error() -> None:
    error = ProviderError("rate_limit", "HTTP 429: slow down", status=429, requests=4)
    assert record(failed_row(TRIAL, EFFORT, error, now=NOW)) == {
        **OF_EVERY_ROW,
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
        "blame": "infrastructure",
        "request": {},
    }


@pytest.mark.parametrize(
    ("error", "blame"),
    [
        (ProviderError("process", "boom"), "agent"),
        (ProviderError("timeout", "no answer"), "infrastructure"),
        (unwritable(OSError("the disk is full")), "infrastructure"),
    ],
)
def test_row_of_an_error_says_who_is_to_blame(error: ProviderError, blame: str) -> None:
    row = failed_row(TRIAL, EFFORT, error, now=NOW)
    assert (row.blame, row.is_crash) == (blame, blame == "agent")


def test_blame_for_rows_of_earlier_versions_follows_from_kind_and_provider() -> None:
    row = failed_row(TRIAL, EFFORT, ProviderError("timeout", "no answer"), now=NOW)
    of_api, of_agent = (row.model_copy(update={"blame": None, "provider": each}) for each in ("ollama", "cli"))
    assert (of_api.is_crash, of_agent.is_crash) == (False, True)


def test_row_with_an_error_of_an_evaluator_keeps_the_answer() -> None:
    failed = {"name": "judge", "status": "error", "score": 0.0, "verdict": "error", "raw_response": "hm"}
    results = (RESULT, RESULT.model_copy(update=failed))
    row = graded(grade=Grade(0.9, "error", (), (), "", results, error="evaluator 'judge': unreadable"))
    assert (row.status, row.verdict, row.score) == ("error", "error", 0.0)
    assert (row.error_kind, row.error) == ("evaluator", "evaluator 'judge': unreadable")
    assert (row.candidate_answer, row.evaluator_results[1].raw_response) == ("Hello!", "hm")


def test_messages_are_included_unless_they_are_only_the_answer() -> None:
    only = (OutputMessage(role="assistant", content=ANSWER.answer),)
    row = graded(replace(ANSWER, messages=only), include_trace=True)
    assert (row.output_messages, stored_response(row).has_trace, stored_response(row).messages) == (None, True, only)
    last = {"role": "assistant", "content": "Hello!", "tool_calls": [{"tool": "search"}]}
    expected = [{"role": "assistant", "tool_calls": [*CALLS]}, last]
    assert record(graded(include_trace=True))["output_messages"] == expected


def test_questions_to_judges_are_left_out_without_the_trace() -> None:
    asked = RESULT.model_copy(update={"judge_prompt": "How good?"})
    rules = RESULT.model_copy(update={"name": "rules", "evaluator_results": (asked,)})
    for include_trace, number in ((True, 2), (False, 0)):
        row = graded(grade=Grade(0.9, "pass", (), (), "", (asked, rules)), include_trace=include_trace)
        assert encode(row).count("How good?") == number


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        ({"has_trace": False}, {"trace_summary": None}),
        ({"usage": None}, {"usage": Usage(), "judge_usage": None}),
        ({"masked": True}, {"masked": True}),
        ({"model": None}, {"model": "gpt-mock"}),
        ({"cost_usd": 0.5}, {"cost_usd": 0.5, "cached": False}),
        ({"cost_usd": 0.5, "cached": True}, {"cost_usd": 0.0, "cached": True}),
    ],
)
def test_fields_of_the_answer(answer: dict[str, Any], fields: dict[str, Any]) -> None:
    row = graded(replace(ANSWER, **answer))
    assert {name: getattr(row, name) for name in fields} == fields


def test_trace_without_calls_has_a_summary() -> None:
    summary = graded(replace(ANSWER, messages=(OutputMessage(role="assistant", content="Hello!"),))).trace_summary
    assert summary is not None
    assert (summary.event_count, summary.tool_names, summary.tool_calls_by_name) == (0, (), {})


def test_tokens_and_costs_of_judges_are_separate() -> None:
    usage = Usage(input_tokens=7, output_tokens=3, total_tokens=10)
    row = graded(grade=replace(GRADE, judge_usage=usage, judge_cost_usd=0.1, masked=True))
    assert (row.judge_usage, row.judge_cost_usd, row.usage, row.masked) == (usage, 0.1, ANSWER.usage, True)


@pytest.mark.parametrize(
    ("trial", "provider", "model"),
    [
        (replace(TRIAL, dry_run=True), "mock", None),
        (replace(TRIAL, target=MockTarget(name="gpt", provider="mock")), "mock", None),
        (TRIAL, "ollama", "gpt-mock"),
    ],
)
def test_provider_of_a_dry_run_is_the_mock(trial: Trial, provider: str, model: str | None) -> None:
    row = graded(replace(ANSWER, model=None), trial=trial)
    assert (row.dry_run, row.provider, row.model, row.target) == (trial.dry_run, provider, model, "gpt")


def test_timestamp_is_in_utc_with_milliseconds() -> None:
    moment = datetime(2030, 1, 2, 5, 4, 5, 678_912, tzinfo=timezone(timedelta(hours=2)))
    assert graded(now=moment).timestamp == "2030-01-02T03:04:05.678Z"


@pytest.mark.parametrize("include_trace", [True, False])
def test_row_is_read_back_with_its_answer(include_trace: bool) -> None:
    row = graded(include_trace=include_trace)
    assert row_of(json.loads(encode(row))) == row
    stored = stored_response(row)
    assert (stored.answer, stored.has_trace, stored.usage) == ("Hello!", include_trace, ANSWER.usage)
    assert len(stored.calls) == (3 if include_trace else 0)


def test_new_grade_keeps_the_digest_of_the_case_that_was_asked() -> None:
    later = plan_case(digest="1" * 64, expected_outcome="New.")
    grade = replace(GRADE, verdict="fail", score=0.0, masked=True)
    row = regraded_row(graded(), later, grade, now=NOW, dry_run=True)
    assert (row.digest, row.expected_outcome, row.verdict, row.score) == (DIGEST, "New.", "fail", 0.0)
    assert (row.masked, row.dry_run, row.candidate_answer, row.seed) == (True, True, "Hello!", 7)
