"""Values in the results of other tools."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import count

from agentv_ci.base.canonical import digest_of
from agentv_ci.contracts.base import JsonObject, JsonValue

MAX_NAME = 120
MARK = 8
"""Digits of a digest that make a name unique."""


def name_of(text: str) -> str:
    """Return a text as a name on one line; other texts have other names."""
    if text and text == text.strip() and text.isprintable() and len(text) <= MAX_NAME:
        return text
    words = "".join(letter if letter.isprintable() else " " for letter in text).split()
    return f"{' '.join(words)[: MAX_NAME - MARK - 1].strip() or 'case'}-{mark_of(text)}"


def mark_of(text: str) -> str:
    """Return a short text that other texts do not have."""
    return digest_of(text)[:MARK]


def numbered(names: Sequence[str]) -> list[str]:
    """Return names of which none occurs twice.

    Later ones get a number, such as `x-2`, that makes no other name.
    """
    taken, seen = set(names), set[str]()
    distinct = []
    for name in names:
        free = name
        if name in seen:
            free = next(
                f"{name}-{number}" for number in count(2) if f"{name}-{number}" not in taken
            )
            taken.add(free)
        seen.add(name)
        distinct.append(free)
    return distinct


def text(value: JsonValue) -> str:
    """Return a text as it is, nothing as an empty text, and other values as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False)


def mapping(value: JsonValue) -> JsonObject:
    """Return a mapping; an empty one for anything else."""
    if isinstance(value, dict):
        return value
    return {}


def objects(value: JsonValue, noun: str) -> list[JsonObject]:
    """Return the objects in a list; nothing is an empty list.

    Raises ValueError for anything else.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"the {noun}s are not a list")  # noqa: TRY004  # of the file
    for number, item in enumerate(value, 1):
        if not isinstance(item, dict):
            raise ValueError(f"{noun} {number} is not an object")  # noqa: TRY004
    return list(map(mapping, value))


def amount(value: JsonValue) -> float | None:
    """Return a number that is not negative; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if math.isfinite(number):
        return max(0.0, number)
    return None


def whole(value: JsonValue) -> int | None:
    """Return a number that is not negative, rounded; None for anything else."""
    found = amount(value)
    if found is None:
        return None
    return round(found)


def messages(value: JsonValue) -> tuple[tuple[str, str], ...]:
    """Return role and text of each message of a question; a text is one of the user."""
    if isinstance(value, list) and all(isinstance(item, dict) and "role" in item for item in value):
        return tuple(
            (text(mapping(item).get("role")), _content(mapping(item).get("content")))
            for item in value
        )
    if value not in (None, ""):
        return (("user", text(value)),)
    return ()


def _content(value: JsonValue) -> str:
    if isinstance(value, list):
        return "\n".join(text(mapping(part).get("text")) for part in value)
    return text(value)
