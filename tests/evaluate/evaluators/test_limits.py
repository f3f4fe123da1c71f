"""`latency`, `cost`, `token_usage`, `tool_calls`."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.contracts.exchange import Response
from agentv_ci.contracts.plan_evaluators import PlanEvaluator
from agentv_ci.contracts.results import ToolCall, Usage
from tests.evaluate.builders import answered, assess, evaluator, grade, plan_case

LATENCY = evaluator("latency", max_ms=100)
COST = evaluator("cost", max_usd=0.01)
TOKENS = evaluator("token_usage", max_total=10)
CALLS = evaluator("tool_calls", max=2)
COUNTED = {"usage": Usage(input_tokens=1000, output_tokens=500, total_tokens=1500)}


def measured(**given: Any) -> Response:
    return Response("x", (), **{"has_trace": False, **given})


def called(number: int) -> Response:
    return answered("x", *[ToolCall(tool="a")] * number, has_trace=True)


def tokens(**limits: int) -> PlanEvaluator:
    return evaluator("token_usage", **limits)


@pytest.mark.parametrize(
    ("limit", "response", "finding", "score"),
    [
        (LATENCY, measured(duration_ms=0), "0 ms, at most 100 ms", 1),
        (LATENCY, measured(duration_ms=100), "100 ms, at most 100 ms", 1),
        (COST, measured(cost_usd=0.0), "$0, at most $0.01", 1),
        (COST, measured(cost_usd=0.01), "$0.01, at most $0.01", 1),
        (evaluator("cost", max_usd=0.3), measured(cost_usd=0.1 + 0.2), "$0.3, at most $0.3", 1),
        (tokens(max_total=1500), measured(**COUNTED), "1,500 tokens, at most 1,500", 1),
        (tokens(max_input=1000), measured(**COUNTED), "1,000 input tokens, at most 1,000", 1),
        (tokens(max_output=500), measured(**COUNTED), "500 output tokens, at most 500", 1),
        (tokens(min_output=500), measured(**COUNTED), "500 output tokens, at least 500", 1),
        (tokens(max_output=5), measured(usage=Usage(output_tokens=5)), "5 output tokens, at most 5", 1),
        (tokens(max_total=9), measured(usage=Usage(input_tokens=4, output_tokens=5)), "9 tokens, at most 9", 1),
        (CALLS, called(0), "0 tool calls, at most 2", 1),
        (CALLS, called(1), "1 tool call, at most 2", 1),
        (CALLS, called(2), "2 tool calls, at most 2", 1),
        (LATENCY, measured(duration_ms=101), "101 ms, at most 100 ms", 0),
        (evaluator("latency", max_ms=1234567), measured(duration_ms=1234568), "1,234,568 ms, at most 1,234,567 ms", 0),
        (COST, measured(cost_usd=0.010001), "$0.010001, at most $0.01", 0),
        (evaluator("cost", max_usd=3e-7), measured(cost_usd=4e-7), "$0.0000004, at most $0.0000003", 0),
        (tokens(max_total=1499), measured(**COUNTED), "1,500 tokens, at most 1,499", 0),
        (tokens(max_input=0), measured(**COUNTED), "1,000 input tokens, at most 0", 0),
        (tokens(max_output=499), measured(**COUNTED), "500 output tokens, at most 499", 0),
        (tokens(min_output=501), measured(**COUNTED), "500 output tokens, at least 501", 0),
        (tokens(max_total=10, max_output=5), measured(usage=Usage(total_tokens=100)), "100 tokens, at most 10", 0),
        (CALLS, called(3), "3 tool calls, at most 2", 0),
    ],
)
def test_answer_within_the_limit_scores_one_and_others_zero(
    limit: PlanEvaluator, response: Response, finding: str, score: float
) -> None:
    found = assess(limit, response)
    assert (found.status, found.score, *found.hits, *found.misses) == ("ok", score, finding)
    assert bool(found.hits) == bool(score)


@pytest.mark.parametrize("usage", [Usage(), Usage(input_tokens=0, output_tokens=0, total_tokens=0)])
def test_no_tokens_beside_a_cost_are_not_measured(usage: Usage) -> None:
    for limit in (tokens(max_total=9), tokens(max_output=9), tokens(max_input=9)):
        assert assess(limit, measured(usage=usage, cost_usd=0.1)).status == "error"
    free = measured(usage=Usage(input_tokens=0, output_tokens=0), cost_usd=0.0)
    assert assess(tokens(max_total=9), free).status == "ok"


def test_every_limit_of_tokens_is_a_finding() -> None:
    found = assess(tokens(min_output=1, max_output=9, max_total=9, max_input=9999), measured(**COUNTED))
    assert found.hits == ("1,000 input tokens, at most 9,999", "500 output tokens, at least 1")
    assert found.misses == ("1,500 tokens, at most 9", "500 output tokens, at most 9")


@pytest.mark.parametrize(
    ("limit", "unmeasured"),
    [
        (LATENCY, "the response time"),
        (COST, "a cost, or the tokens of a model with a known price"),
        (TOKENS, "the number of tokens"),
        (tokens(max_input=1, min_output=1), "the number of input tokens and output tokens"),
        (CALLS, "tool calls"),
    ],
)
def test_missing_measure_is_skipped_unless_it_is_required_or_alone(limit: PlanEvaluator, unmeasured: str) -> None:
    other, required = evaluator("contains", value="x"), limit.model_copy(update={"required": True})
    found = grade(plan_case(limit, other), measured())
    first = found.results[0]
    assert (first.status, first.verdict, first.score) == ("skipped", "skipped", 0.0)
    assert first.reasoning == f"the target does not report {unmeasured}"
    assert (found.verdict, found.score, found.error) == ("pass", 1.0, None)
    negated = limit.model_copy(update={"negate": True})
    assert grade(plan_case(negated, other), measured()).results[0].status == "skipped"
    assert grade(plan_case(limit), measured()).verdict == "error"
    assert grade(plan_case(required, other), measured()).verdict == "error"
