"""The cost of answers.

It is by the author's prices, else by those of a table of public prices (`make prices`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from agentv_ci.contracts.api_targets import HttpTarget
from agentv_ci.contracts.config import Price, Rates
from agentv_ci.contracts.targets import Target, model_name

if TYPE_CHECKING:
    # Checking documents needs prices, but no answers.
    from agentv_ci.contracts.exchange import Response
    from agentv_ci.contracts.results import Expense, Usage

DATED = re.compile(r"(-latest|-\d{4}-\d{2}-\d{2}|-\d{8}|@\d{8})$")
"""The suffix of a dated model, which costs the same as the undated one."""
WRITE_FACTOR = 1.25
"""The usual price of input that is written to a cache, by the price of input; for an hour, see
below.
"""
HOUR_FACTOR = 2.0


@lru_cache(maxsize=1_000)
def names_of(model: str) -> tuple[str, ...]:
    """Return the names under which a model's price is looked up, in order."""
    return tuple(dict.fromkeys((model, DATED.sub("", model))))


def price_of(model: str, authored: Mapping[str, Price]) -> Price | None:
    """Return a model's price; None when neither the author nor the table knows it."""
    for prices_of in (authored.get, _price):
        for name in names_of(model):
            if (price := prices_of(name)) is not None:
                return price
    return None


def prices_as_of() -> str:
    """Return the date of the table, as YYYY-MM-DD."""
    return str(_document()["as_of"])


def load_prices() -> None:
    """Read the table now."""
    _document()


def cost_of_response(
    target: Target, response: Response, prices: Mapping[str, Price]
) -> float | None:
    """Return the cost of an answer in US dollars: the provider's figure, else tokens times price.

    The price is that of the target's model, else that of the model that the answer names. None
    without a price or a token count.
    """
    if response.cost_usd is not None or response.usage is None:
        return response.cost_usd
    return _cost_of_tokens(response.usage, target, response.model, prices)


def priced(
    expenses: Iterable[Expense], target: Target, prices: Mapping[str, Price]
) -> tuple[Expense, ...]:
    """Return the expenses of a target with their costs.

    These are the provider's figures, else tokens times price.
    """

    def with_cost(expense: Expense) -> Expense:
        if expense.cost_usd is not None:
            return expense
        cost_usd = _cost_of_tokens(expense.usage, target, expense.model, prices)
        return expense.model_copy(update={"cost_usd": cost_usd})

    return tuple(map(with_cost, expenses))


def _cost_of_tokens(
    usage: Usage, target: Target, model: str | None, prices: Mapping[str, Price]
) -> float | None:
    for name in (model_name(target), model):
        price = price_of(name, prices) if name else None
        if price is not None:
            return cost_of(usage, price, is_one_request=isinstance(target, HttpTarget))
    return None


def cost_of(usage: Usage, price: Price, *, is_one_request: bool = True) -> float | None:
    """Return the cost of tokens in US dollars; None when they are not counted.

    The sum of several requests says nothing of their lengths, so it has the prices of short ones.
    """
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    rates = rates_of(price, usage.input_tokens if is_one_request else 0)
    left = usage.input_tokens
    cached = min(usage.cached_tokens or 0, left)
    left -= cached
    written = min(usage.cache_write_tokens or 0, left)
    left -= written
    of_hour = min(usage.cache_write_1h_tokens or 0, written)
    total = left * rates.input_per_mtok + usage.output_tokens * rates.output_per_mtok
    total += cached * _rate(rates.cached_input_per_mtok, rates.input_per_mtok)
    of_writing = _rate(rates.cache_write_per_mtok, WRITE_FACTOR * rates.input_per_mtok)
    total += (written - of_hour) * of_writing
    total += of_hour * _rate(rates.cache_write_1h_per_mtok, HOUR_FACTOR * rates.input_per_mtok)
    return round(total / 1e6, 9)


def rates_of(price: Price, input_tokens: float) -> Rates:
    """Return the prices of a request with so many input tokens."""
    long_context = price.long_context
    if long_context is not None and input_tokens > long_context.above_tokens:
        return long_context
    return price


def _rate(given: float | None, default: float) -> float:
    return default if given is None else given


def unpriced_name(target: Target, model: str | None, usage: Usage | None) -> str:
    """Return the name of a model without a known cost, for messages."""
    name = model_name(target) or model or target.name
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return f"{name} (does not report tokens)"
    return name


@cache
def _document() -> Mapping[str, object]:
    loaded: Mapping[str, object] = json.loads(
        (Path(__file__).parent / "prices.json").read_text("utf-8")
    )
    return loaded


@lru_cache(maxsize=1_000)
def _price(name: str) -> Price | None:
    models = _document()["models"]
    assert isinstance(models, dict)
    if name not in models:
        return None
    return Price(**models[name])
