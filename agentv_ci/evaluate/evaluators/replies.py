"""Reading `{"score", "hits", "misses", "reasoning"}` from scripts and judges."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import Score
from agentv_ci.outside import well_formed

MOST_FINDINGS = 4
"""Hits, and misses, that a judge may name."""

_DECODER = json.JSONDecoder()


def first_object(text: str) -> JsonObject | None:
    """Return the first JSON object in a text, None when there is none."""
    for start in _braces(text):
        try:
            value, _ = _DECODER.raw_decode(text, start)
            clean = well_formed(value)
        except (ValueError, RecursionError):
            continue
        if isinstance(clean, dict):
            return clean
    return None


def _braces(text: str) -> Iterator[int]:
    position = text.find("{")
    while position >= 0:
        yield position
        position = text.find("{", position + 1)


def read_score(reply: JsonObject, *, most: int | None) -> Score | None:
    """Return the score a reply gives, clamped to [0, 1], with at most `most` hits and misses; None without one."""
    value = _number(reply.get("score"))
    if value is None:
        return None
    reasoning = reply.get("reasoning")
    return Score(
        score=min(1.0, max(0.0, value)),
        hits=_texts(reply.get("hits"))[:most],
        misses=_texts(reply.get("misses"))[:most],
        reasoning=reasoning.strip() if isinstance(reasoning, str) else "",
    )


def _number(value: JsonValue) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _texts(value: JsonValue) -> tuple[str, ...]:
    items = value if isinstance(value, list) else ()
    return tuple(text for item in items if isinstance(item, str) and (text := item.strip()))
