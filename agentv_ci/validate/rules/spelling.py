"""Two spellings of one key."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from agentv_ci.contracts.base import Authored, JsonValue, spellings
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.walk import contracts_of, mappings


def check(contract: type[Authored], find: Finder) -> Iterator[Diagnostic]:
    """AV314 for keys given in two spellings, or both outside and inside `settings`."""
    others = other_spellings(contract)
    keys = find.source.keys
    if others.isdisjoint(keys) if keys is not None else not _has_any(find.source.data, others):
        return
    for each, mapping, pointer in mappings(contract, find.source.data):
        names = spellings(each)
        winners: dict[str, str] = {}
        for key in sorted((key for key in mapping if key in names), key=lambda key: names[key][1]):
            winner = winners.setdefault(names[key][0], key)
            if winner != key:
                message = f"'{key}' is another spelling of '{winner}', which is given too and wins"
                yield find.at("AV314", message, (*pointer, key), key=True)


@cache
def other_spellings(contract: type[Authored]) -> frozenset[str]:
    """Return all keys that are not the first spelling of what they mean."""
    return frozenset(
        key for each in contracts_of(contract) for key, (field, _) in spellings(each).items() if key != field
    )


def _has_any(value: JsonValue, keys: frozenset[str]) -> bool:
    if isinstance(value, dict):
        return not keys.isdisjoint(value) or any(_has_any(item, keys) for item in value.values())
    return isinstance(value, list) and any(_has_any(item, keys) for item in value)
