"""Prices of models."""

from __future__ import annotations

import re

import pytest

from agentv_ci.contracts.config import Price
from agentv_ci.contracts.results import Usage
from agentv_ci.prices import cost_of, price_of, prices_as_of

OWN = Price(input_per_mtok=1, output_per_mtok=2)


@pytest.mark.parametrize(
    ("dated", "plain"),
    [
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("gpt-5-latest", "gpt-5"),
    ],
)
def test_a_dated_model_costs_what_the_undated_one_does(dated: str, plain: str) -> None:
    assert price_of(dated, {}) == price_of(plain, {}) is not None
    assert price_of(dated, {plain: OWN}) == OWN


def test_prices_are_those_of_the_author_then_of_the_dated_table() -> None:
    assert price_of("gpt-5", {"gpt-5": OWN}) == OWN
    assert price_of("gpt-5", {"gpt-4": OWN}) not in (OWN, None)
    assert [price_of(model, {}) for model in ("my-model", "")] == [None, None]
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", prices_as_of())


@pytest.mark.parametrize(
    ("tokens", "cached_rate", "cost"),
    [
        ((1000, 500, None), None, 0.0105),
        ((1000, 0, 400), None, 0.003),
        ((1000, 0, 400), 0.3, 0.00192),
        ((1000, 0, 5000), 0, 0.0),
        ((None, 5, None), None, None),
        ((5, None, None), None, None),
    ],
)
def test_cost_is_the_price_of_the_tokens(
    tokens: tuple[int | None, ...], cached_rate: float | None, cost: float | None
) -> None:
    usage = Usage(input_tokens=tokens[0], output_tokens=tokens[1], cached_tokens=tokens[2])
    price = Price(input_per_mtok=3, output_per_mtok=15).model_copy(update={"cached_input_per_mtok": cached_rate})
    assert cost_of(usage, price) == cost
