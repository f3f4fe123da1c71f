"""Prices of models."""

from __future__ import annotations

import re

import pytest

from agentv_ci.base.prices import cost_of, price_of, prices_as_of
from agentv_ci.contracts.config import LongContext, Price
from agentv_ci.contracts.results import Usage

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


LONG = Price(
    input_per_mtok=3,
    output_per_mtok=15,
    cached_input_per_mtok=0.3,
    long_context=LongContext(above_tokens=200_000, input_per_mtok=6, output_per_mtok=22.5, cache_write_per_mtok=9),
)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"input_tokens": 12_307, "output_tokens": 550, "cache_write_tokens": 12_304}, 0.054399),
        ({"input_tokens": 1_000, "cache_write_tokens": 1_000, "cache_write_1h_tokens": 400}, 0.00465),
        ({"input_tokens": 1_000, "cached_tokens": 600, "cache_write_tokens": 400}, 0.00168),
        ({"input_tokens": 1_000, "cached_tokens": 900, "cache_write_tokens": 400}, 0.000645),
        ({"input_tokens": 200_000, "output_tokens": 1_000}, 0.615),
        ({"input_tokens": 200_001, "output_tokens": 1_000}, 1.222506),
        ({"input_tokens": 300_000, "cached_tokens": 100_000, "cache_write_tokens": 200_000}, 2.4),
    ],
)
def test_writes_to_the_cache_and_long_requests_have_prices_of_their_own(usage: dict[str, int], cost: float) -> None:
    assert cost_of(Usage(**{"output_tokens": 0, **usage}), LONG) == cost


def test_a_sum_of_requests_is_not_a_long_one() -> None:
    usage = Usage(input_tokens=300_000, output_tokens=0)
    assert [cost_of(usage, LONG), cost_of(usage, LONG, is_one_request=False)] == [1.8, 0.9]


def test_the_table_has_prices_of_writes_and_of_long_requests() -> None:
    price = price_of("claude-sonnet-4-5", {})
    assert price is not None
    assert (price.cache_write_per_mtok, price.cache_write_1h_per_mtok) == (3.75, 6)
    assert price.long_context is not None
    assert (price.long_context.above_tokens, price.long_context.cache_write_per_mtok) == (200_000, 7.5)
