"""Answers that are data: JSON, perhaps in a code fence."""

from __future__ import annotations

import re

from agentv_ci.contracts.base import JsonValue
from agentv_ci.outside import read_json

_FENCE = re.compile(r"\A\s*```[^\n`]*\n(?P<inside>.*?)\n?```\s*\Z", re.DOTALL)


def unfenced(answer: str) -> str:
    """Return an answer without the one code fence it stands in."""
    fenced = _FENCE.match(answer)
    return fenced["inside"] if fenced else answer


def read_answer(answer: str) -> JsonValue:
    """Return the JSON that an answer is, one code fence taken off; raises ValueError."""
    return read_json(unfenced(answer), strict=True)


def is_same(one: JsonValue, other: JsonValue) -> bool:
    """Equality of JSON: 1 is 1.0, and true is not 1."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
        case list(), list():
            return len(one) == len(other) and all(map(is_same, one, other))
        case _:
            return isinstance(one, bool) == isinstance(other, bool) and one == other
