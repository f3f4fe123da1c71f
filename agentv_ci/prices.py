"""What models cost: the author's prices over a table of public ones (`make prices`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

from agentv_ci.contracts.config import Price

DATED = re.compile(r"(-latest|-\d{4}-\d{2}-\d{2}|-\d{8}|@\d{8})$")
"""How makers of models write which day's model is meant; a dated model costs what the undated one does."""


@lru_cache(maxsize=1_000)
def names_of(model: str) -> tuple[str, ...]:
    """Return the names under which a model's price may stand, the best one first."""
    return tuple(dict.fromkeys((model, DATED.sub("", model))))


def price_of(model: str, authored: Mapping[str, Price]) -> Price | None:
    """Return a model's price; None when neither the author nor the table knows it."""
    return next((prices[name] for prices in (authored, _table()) for name in names_of(model) if name in prices), None)


def prices_as_of() -> str:
    """Return the day of the table, as YYYY-MM-DD."""
    return str(_document()["as_of"])


def load_prices() -> None:
    """Read the table now."""
    _table()


@cache
def _document() -> Mapping[str, object]:
    loaded: Mapping[str, object] = json.loads((Path(__file__).parent / "prices.json").read_text("utf-8"))
    return loaded


@cache
def _table() -> Mapping[str, Price]:
    models = _document()["models"]
    assert isinstance(models, dict)
    return {name: Price(**price) for name, price in models.items()}
