"""`type: latency`, `cost`, `token_usage`, `tool_calls`, and what tokens cost."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.contracts.config import Price
from agentv_ci.contracts.evaluators import CostEvaluator, LatencyEvaluator, TokenUsageEvaluator, ToolCallsEvaluator
from agentv_ci.contracts.exchange import Response
from agentv_ci.contracts.plan import PlanEvaluator
from agentv_ci.contracts.results import EvaluatorResult, ToolCall, Usage
from agentv_ci.prices import cost_of
from tests.evaluate.builders import answered, assess, grade, plan_case

LATENCY = LatencyEvaluator(name="l", type="latency", max_ms=100)
COST = CostEvaluator(name="c", type="cost", max_usd=0.01)
TOKENS = TokenUsageEvaluator(name="t", type="token_usage", max_total=10)
CALLS = ToolCallsEvaluator(name="n", type="tool_calls", max=2)


def measured(**given: Any) -> Response:
    return Response("x", (), **{"has_trace": False, **given})


def tokens(usage: Usage | None, **limits: Any) -> EvaluatorResult:
    return assess(TokenUsageEvaluator(name="t", type="token_usage", **limits), measured(usage=usage))


@pytest.mark.parametrize(
    ("took_ms", "score", "hits", "misses"),
    [
        (0, 1.0, ("0 ms, at most 100 ms",), ()),
        (100, 1.0, ("100 ms, at most 100 ms",), ()),
        (101, 0.0, (), ("101 ms, at most 100 ms",)),
        (12345, 0.0, (), ("12,345 ms, at most 100 ms",)),
    ],
)
def test_latency_is_one_until_the_limit(
    took_ms: int, score: float, hits: tuple[str, ...], misses: tuple[str, ...]
) -> None:
    outcome = assess(LATENCY, measured(duration_ms=took_ms))
    assert (outcome.status, outcome.score, outcome.hits, outcome.misses) == ("ok", score, hits, misses)


@pytest.mark.parametrize(
    ("cost_usd", "score", "hits", "misses"),
    [
        (0.0, 1.0, ("$0, at most $0.01",), ()),
        (0.01, 1.0, ("$0.01, at most $0.01",), ()),
        (0.010001, 0.0, (), ("$0.010001, at most $0.01",)),
    ],
)
def test_cost_is_one_until_the_limit(
    cost_usd: float, score: float, hits: tuple[str, ...], misses: tuple[str, ...]
) -> None:
    outcome = assess(COST, measured(cost_usd=cost_usd))
    assert (outcome.status, outcome.score, outcome.hits, outcome.misses) == ("ok", score, hits, misses)


@pytest.mark.parametrize(
    ("limits", "score", "hits", "misses"),
    [
        ({"max_total": 1500}, 1.0, ("1,500 tokens, at most 1,500",), ()),
        ({"max_total": 1499}, 0.0, (), ("1,500 tokens, at most 1,499",)),
        ({"max_input": 1000}, 1.0, ("1,000 input tokens, at most 1,000",), ()),
        ({"max_input": 0}, 0.0, (), ("1,000 input tokens, at most 0",)),
        ({"max_output": 500}, 1.0, ("500 output tokens, at most 500",), ()),
        ({"max_output": 499}, 0.0, (), ("500 output tokens, at most 499",)),
        ({"min_output": 500}, 1.0, ("500 output tokens, at least 500",), ()),
        ({"min_output": 501}, 0.0, (), ("500 output tokens, at least 501",)),
        (
            {"min_output": 1, "max_output": 9, "max_total": 9, "max_input": 9999},
            0.0,
            ("1,000 input tokens, at most 9,999", "500 output tokens, at least 1"),
            ("1,500 tokens, at most 9", "500 output tokens, at most 9"),
        ),
    ],
)
def test_tokens_score_one_when_every_limit_holds(
    limits: dict[str, int], score: float, hits: tuple[str, ...], misses: tuple[str, ...]
) -> None:
    outcome = tokens(Usage(input_tokens=1000, output_tokens=500, total_tokens=1500), **limits)
    assert (outcome.status, outcome.score, outcome.hits, outcome.misses) == ("ok", score, hits, misses)


def test_tokens_that_nothing_limits_need_not_be_counted() -> None:
    assert tokens(Usage(output_tokens=5), max_output=5).score == 1.0


@pytest.mark.parametrize(
    ("number", "score", "hits", "misses"),
    [
        (0, 1.0, ("0 tool calls, at most 2",), ()),
        (1, 1.0, ("1 tool call, at most 2",), ()),
        (2, 1.0, ("2 tool calls, at most 2",), ()),
        (3, 0.0, (), ("3 tool calls, at most 2",)),
    ],
)
def test_tool_calls_are_counted(number: int, score: float, hits: tuple[str, ...], misses: tuple[str, ...]) -> None:
    outcome = assess(CALLS, answered("x", *[ToolCall(tool="a")] * number, has_trace=True))
    assert (outcome.status, outcome.score, outcome.hits, outcome.misses) == ("ok", score, hits, misses)


UNMEASURED = [
    (LATENCY, "the target does not report the response time"),
    (COST, "the target does not report a cost, or the tokens of a model with a known price"),
    (TOKENS, "the target does not report the number of tokens"),
    (CALLS, "the target does not report tool calls"),
]


@pytest.mark.parametrize(("evaluator", "reasoning"), UNMEASURED)
def test_measure_that_is_missing_is_skipped_beside_one_that_scored(evaluator: PlanEvaluator, reasoning: str) -> None:
    case = plan_case(evaluator, LatencyEvaluator(name="other", type="latency", max_ms=100))
    response = measured(duration_ms=None if evaluator is LATENCY else 5)
    if evaluator is LATENCY:
        case = plan_case(evaluator, CostEvaluator(name="other", type="cost", max_usd=1))
        response = measured(cost_usd=0.5)
    found = grade(case, response)
    outcome = found.results[0]
    assert (outcome.status, outcome.verdict, outcome.score, outcome.reasoning) == ("skipped", "skipped", 0.0, reasoning)
    assert (found.verdict, found.score, found.error) == ("pass", 1.0, None)


@pytest.mark.parametrize("evaluator", [each for each, _ in UNMEASURED])
def test_measure_that_is_missing_is_an_error_when_it_is_required_or_alone(evaluator: PlanEvaluator) -> None:
    required = evaluator.model_copy(update={"required": True})
    other = ToolCallsEvaluator(name="other", type="tool_calls", max=9)
    assert grade(plan_case(evaluator), measured()).verdict == "error"
    assert grade(plan_case(required), measured()).verdict == "error"
    assert grade(plan_case(evaluator, other), measured()).verdict == "error"
    assert grade(plan_case(required, LATENCY), measured(duration_ms=1)).verdict == (
        "pass" if evaluator is LATENCY else "error"
    )


@pytest.mark.parametrize("evaluator", [each for each, _ in UNMEASURED])
def test_measure_that_is_missing_stays_skipped_when_negated(evaluator: PlanEvaluator) -> None:
    negated = evaluator.model_copy(update={"negate": True})
    case = plan_case(negated, LatencyEvaluator(name="other", type="latency", max_ms=100))
    response = measured() if evaluator is LATENCY else measured(duration_ms=1)
    assert grade(case, response).results[0].status == ("error" if evaluator is LATENCY else "skipped")


@pytest.mark.parametrize(
    ("usage", "price", "cost"),
    [
        (Usage(input_tokens=1_000_000, output_tokens=0), Price(input_per_mtok=3, output_per_mtok=15), 3.0),
        (Usage(input_tokens=0, output_tokens=1_000_000), Price(input_per_mtok=3, output_per_mtok=15), 15.0),
        (Usage(input_tokens=1000, output_tokens=500), Price(input_per_mtok=3, output_per_mtok=15), 0.0105),
        (
            Usage(input_tokens=1000, output_tokens=0, cached_tokens=400),
            Price(input_per_mtok=3, output_per_mtok=15),
            0.003,
        ),
        (
            Usage(input_tokens=1000, output_tokens=0, cached_tokens=400),
            Price(input_per_mtok=3, output_per_mtok=15, cached_input_per_mtok=0.3),
            0.00192,
        ),
        (
            Usage(input_tokens=1000, output_tokens=0, cached_tokens=5000),
            Price(input_per_mtok=3, output_per_mtok=15, cached_input_per_mtok=0),
            0.0,
        ),
        (Usage(input_tokens=0, output_tokens=0), Price(input_per_mtok=3, output_per_mtok=15), 0.0),
        (Usage(input_tokens=None, output_tokens=5), Price(input_per_mtok=3, output_per_mtok=15), None),
        (Usage(input_tokens=5, output_tokens=None), Price(input_per_mtok=3, output_per_mtok=15), None),
        (Usage(total_tokens=5), Price(input_per_mtok=3, output_per_mtok=15), None),
        (Usage(input_tokens=7, output_tokens=0), Price(input_per_mtok=0.1, output_per_mtok=0), 7e-7),
    ],
)
def test_cost_is_the_price_of_the_tokens(usage: Usage, price: Price, cost: float | None) -> None:
    assert cost_of(usage, price) == cost
