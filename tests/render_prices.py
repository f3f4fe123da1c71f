"""Render agentv_ci/prices.json from the package genai-prices: `make prices`. The diff is the review."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent.parent / "agentv_ci" / "prices.json"

MAKERS = (
    *("anthropic", "openai", "google", "mistral", "deepseek", "x-ai", "cohere", "moonshotai", "zai", "meta", "minimax"),
)
"""Makers of models, not resellers; of two that call a model alike the first one's price counts."""
FIELDS = {
    "input_per_mtok": "input_mtok",
    "output_per_mtok": "output_mtok",
    "cached_input_per_mtok": "cache_read_mtok",
    "cache_write_per_mtok": "cache_write_mtok",
    "cache_write_1h_per_mtok": "cache_write_1h_mtok",
}


def main() -> None:
    """Write the table: what a million tokens of text cost today, also of long requests where length matters."""
    from genai_prices.data import providers

    now = datetime.now(UTC)
    models: dict[str, dict[str, Any]] = {}
    for maker in MAKERS:
        (provider,) = (each for each in providers if each.id == maker)
        for model in provider.models:
            prices = _prices(model.get_prices(now))
            if prices.keys() >= {"input_per_mtok", "output_per_mtok"}:
                for name in (model.id, model.id.removesuffix("-latest")):
                    models.setdefault(name, prices)
    source = f"genai-prices {version('genai-prices')}"
    head = f'{{\n "source": "{source}",\n "as_of": "{now.date().isoformat()}",\n "models": {{\n'
    lines = (f"  {json.dumps(name)}: {json.dumps(prices)}" for name, prices in sorted(models.items()))
    TABLE.write_text(head + ",\n".join(lines) + "\n }\n}\n", "utf-8", newline="\n")


def _prices(prices: Any) -> dict[str, Any]:
    given = {name: getattr(prices, field, None) for name, field in FIELDS.items()}
    known = {name: price for name, price in given.items() if price is not None}
    base = {name: float(getattr(price, "base", price)) for name, price in known.items()}
    starts = {tier.start for price in known.values() for tier in getattr(price, "tiers", ())}
    if not starts:
        return base
    # One limit, above which all tokens of a request have another price.
    (start,) = starts
    tiered = {name: float(price.tiers[0].price) for name, price in known.items() if hasattr(price, "tiers")}
    return base | {"long_context": {"above_tokens": start, **base, **tiered}}


if __name__ == "__main__":
    main()
