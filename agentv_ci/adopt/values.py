"""Values in the results of other tools."""

from __future__ import annotations

import json
import math
import re

from agentv_ci.contracts.base import JsonObject, JsonValue

_UNSAFE = re.compile(r"[^\w./\[\]:-]+")


def slug(text: str) -> str:
    """Return a text as an id, on one line and without spaces."""
    return _UNSAFE.sub("-", text.strip())[:120].strip("-") or "case"


def share(value: JsonValue) -> float | None:
    """Return a number as a score from 0 to 1; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return min(1.0, max(0.0, float(value)))


def text(value: JsonValue) -> str:
    """Return a text as it is, nothing as an empty text, and other values as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def mapping(value: JsonValue) -> JsonObject:
    """Return a mapping; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def amount(value: JsonValue) -> float | None:
    """Return a number that is not negative; None for anything else."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return max(0.0, float(value)) if is_number else None  # type: ignore[arg-type]  # it is a number


def whole(value: JsonValue) -> int | None:
    """Return a number that is not negative, rounded; None for anything else."""
    found = amount(value)
    return None if found is None else round(found)


def messages(value: JsonValue) -> tuple[tuple[str, str], ...]:
    """Return role and text of each message of a question; a text is one of the user."""
    if isinstance(value, list) and all(isinstance(each, dict) and "role" in each for each in value):
        return tuple((text(mapping(each).get("role")), _content(mapping(each).get("content"))) for each in value)
    return (("user", text(value)),) if value not in (None, "") else ()


def _content(value: JsonValue) -> str:
    if isinstance(value, list):
        return "\n".join(text(mapping(part).get("text")) for part in value)
    return text(value)
