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
FIELDS = {"input_per_mtok": "input_mtok", "output_per_mtok": "output_mtok", "cached_input_per_mtok": "cache_read_mtok"}


def main() -> None:
    """Write the table: what a million tokens of text cost today, for short requests where length matters."""
    from genai_prices.data import providers

    now = datetime.now(UTC)
    models: dict[str, dict[str, float]] = {}
    for maker in MAKERS:
        (provider,) = (each for each in providers if each.id == maker)
        for model in provider.models:
            prices = _prices(model.get_prices(now))
            if prices.keys() >= {"input_per_mtok", "output_per_mtok"}:
                for name in (model.id, model.id.removesuffix("-latest")):
                    models.setdefault(name, prices)
    table = {
        "source": f"genai-prices {version('genai-prices')}",
        "as_of": now.date().isoformat(),
        "models": dict(sorted(models.items())),
    }
    lines = json.dumps(table, indent=1).replace("{\n   ", "{").replace(",\n   ", ", ").replace("\n  }", "}")
    TABLE.write_text(lines + "\n", "utf-8", newline="\n")


def _prices(prices: Any) -> dict[str, float]:
    given = {name: getattr(prices, field, None) for name, field in FIELDS.items()}
    return {name: float(getattr(price, "base", price)) for name, price in given.items() if price is not None}


if __name__ == "__main__":
    main()
