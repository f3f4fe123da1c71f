"""Two spellings of one key."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic.alias_generators import to_camel

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.source import Pointer
from agentv_ci.validate.findings import Finder

FREE_MAPS = frozenset(
    {"metadata", "env", "minimums", "schema_inline", "schemaInline", "config", "headers", "extra_body", "extraBody"}
    | {"input", "output", "responses"}
)
"""Mappings whose keys are the author's own."""

OLDER = {"outcome": "expected_outcome"}


def check(find: Finder) -> Iterator[Diagnostic]:
    """AV314 for keys given in both spellings; the snake_case one wins."""
    for pointer, mapping in _mappings(find.source.data, ()):
        for key in mapping:
            for loser in (to_camel(key), *(old for old, new in OLDER.items() if new == key)):
                if loser != key and loser in mapping:
                    message = f"'{loser}' is another spelling of '{key}', which is given too and wins"
                    yield find.at("AV314", message, (*pointer, loser), key=True)


def _mappings(value: JsonValue, pointer: Pointer) -> Iterator[tuple[Pointer, dict[str, JsonValue]]]:
    if isinstance(value, dict):
        yield pointer, value
        for key, item in value.items():
            if key not in FREE_MAPS and not key.startswith("x-"):
                yield from _mappings(item, (*pointer, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _mappings(item, (*pointer, index))
