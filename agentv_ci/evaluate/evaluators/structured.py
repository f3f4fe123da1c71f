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
