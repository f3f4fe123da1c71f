"""What a run has cost, and whether it may continue."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from msgspec.structs import replace

from agentv_ci.base.prices import cost_of_response
from agentv_ci.contracts.config import Price
from agentv_ci.contracts.exchange import Response
from agentv_ci.contracts.results import Usage
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.budget import Budget
from tests.execute.builders import target
from tests.support.runs import suite

GPT = target(provider="openai", model="gpt-2030")
CODEX = target(name="codex", provider="codex")
COMMAND = target(provider="cli", command_template="x")
MOCK = target(provider="mock")
NONE: Mapping[str, float] = MappingProxyType({})


def answer(cost_usd: float | None = None, **given: Any) -> Response:
    usage = Usage(input_tokens=100, output_tokens=10, total_tokens=110)
    return replace(Response("42", (), has_trace=False, cost_usd=cost_usd, usage=usage), **given)


def budget(
    most_usd: float | None = None, suites: Mapping[str, float] = NONE, shards: int = 1
) -> tuple[Budget, list[str]]:
    """Return the budget of the suites `a` and `b`, which may have budgets of their own, and its warnings."""
    warned: list[str] = []
    given = {name: suite(name, **({"max_cost_usd": suites[name]} if name in suites else {})) for name in "ab"}
    return Budget(most_usd, given, shards, warned.append), warned


@pytest.mark.parametrize(
    ("most_usd", "suites", "shards", "spent", "exhausted"),
    [
        (None, {}, 1, {"a": 1e9}, ""),
        (1.0, {}, 1, {"a": 0.5, "b": 0.25}, ""),
        (1.0, {}, 1, {"a": 0.5, "b": 0.5}, "ab"),
        (1.0, {"a": 0.5}, 1, {"a": 0.5, "b": 0.25}, "a"),
        (0.0, {}, 1, {}, ""),
        (0.0, {}, 1, {"a": 0.0001}, "ab"),
        (4.0, {"b": 2.0}, 4, {"b": 0.5}, "b"),
        (4.0, {"b": 2.0}, 4, {"b": 0.5, "a": 0.5}, "ab"),
    ],
)
def test_a_budget_of_the_run_or_a_suite_is_used_up(
    most_usd: float | None, suites: Mapping[str, float], shards: int, spent: Mapping[str, float], exhausted: str
) -> None:
    found, _ = budget(most_usd, suites, shards)
    found.answered(MOCK, answer(), "a")
    for name, cost_usd in spent.items():
        found.answered(GPT, answer(cost_usd), name)
    assert "".join(name for name in "ab" if found.is_exhausted(name)) == exhausted
    assert found.spent_usd == sum(spent.values())


@pytest.mark.parametrize(
    ("asked", "given", "named"),
    [
        (GPT, answer(), ["gpt-2030"]),
        (GPT, answer(usage=None), ["gpt-2030 (does not report tokens)"]),
        (GPT, answer(usage=Usage(input_tokens=1)), ["gpt-2030 (does not report tokens)"]),
        (CODEX, answer(model="served"), ["served"]),
        (CODEX, answer(), ["codex"]),
        (GPT, answer(5.0, cached=True), []),
        (GPT, answer(cached=True), []),
        (COMMAND, answer(), []),
        (MOCK, answer(), []),
    ],
)
def test_a_model_without_a_price_is_named_once(asked: Target, given: Response, named: list[str]) -> None:
    spent, _ = budget()
    spent.answered(asked, given, "a")
    spent.answered(asked, given, "a")
    assert (list(spent.unpriced), spent.spent_usd) == (named, 0.0)


@pytest.mark.parametrize(("most_usd", "suites", "warnings"), [(None, {}, 0), (1.0, {}, 1), (None, {"b": 1.0}, 1)])
def test_with_a_budget_a_missing_price_is_one_warning(
    most_usd: float | None, suites: dict[str, float], warnings: int
) -> None:
    spent, warned = budget(most_usd, suites)
    spent.answered(GPT, answer(), "a")
    spent.answered(GPT, answer(), "b")
    said = "the cost of 'gpt-2030' is unknown, so the budget cannot be enforced; set its price in 'prices'"
    assert warned == [said] * warnings


@pytest.mark.parametrize(
    ("prices", "given", "expected"),
    [
        ({"m": 99.0}, {}, 99.0),
        ({"m": 99.0, "m-2026-01-01": 7.0}, {}, 99.0),
        ({"m-2026-01-01": 7.0}, {}, 7.0),
        ({}, {}, None),
        ({"m": 99.0}, {"cost_usd": 1.0}, 1.0),
        ({"m": 99.0}, {"usage": None}, None),
        ({"m": 99.0}, {"usage": Usage(input_tokens=1)}, None),
    ],
)
def test_an_answer_has_the_providers_cost_else_the_price_of_its_target_or_model(
    prices: dict[str, float], given: dict[str, Any], expected: float | None
) -> None:
    authored = {name: Price(input_per_mtok=dollars, output_per_mtok=0) for name, dollars in prices.items()}
    usage = Usage(input_tokens=1_000_000, output_tokens=0)
    response = replace(answer(model="m-2026-01-01", usage=usage), **given)
    assert cost_of_response(target(provider="openai", model="m"), response, authored) == expected
