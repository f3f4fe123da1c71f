"""JSON that others wrote: read without trusting its depth, its numbers or its characters."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from agentv_ci.text import shortened, unfenced, well_formed_text

if TYPE_CHECKING:
    # Cleaning a text needs no contracts.
    from agentv_ci.contracts.base import JsonObject, JsonValue

MAX_DEPTH = 200
"""Deeper than anything people mean, and shallow enough for every recursive reader behind us."""


def read_json(text: str, *, strict: bool = False) -> JsonValue:
    """Return the value of a JSON text, well-formed; raises ValueError, also for what is nested too deep.

    NaN and Infinity, which are no JSON but often written, are null, and so are numbers that no float can hold; with
    `strict` they raise too.
    """
    try:
        value: JsonValue = (
            json.loads(text, parse_constant=refuse_constant, parse_float=_finite) if strict else json.loads(text)
        )
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    return well_formed(value)


def json_or_none(text: str) -> JsonValue:
    """Return the value of a JSON text; None for any other text."""
    try:
        return read_json(text)
    except ValueError:
        return None


def refuse_constant(constant: str) -> None:
    """Raise ValueError for NaN and Infinity, which are no JSON."""
    raise ValueError(f"{constant} is not JSON")


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"{shortened(number, 40)} is larger than any number that can be held")
    return value


def read_answer(text: str) -> JsonValue:
    """Return the JSON that an answer is, one code fence taken off; raises ValueError."""
    try:
        return read_json(unfenced(text), strict=True)
    except ValueError as error:
        around = "; text stands around the code fence" if "```" in text and unfenced(text) == text else ""
        raise ValueError(f"{error}{around}") from error


def well_formed(value: JsonValue, levels: int = MAX_DEPTH) -> JsonValue:
    """Return JSON without what no file of ours can hold: lone surrogates, NaN and infinite numbers.

    Raises ValueError for what has more levels than `levels`.
    """
    if levels < 0:
        raise ValueError("nested too deep")
    match value:
        case str():
            return well_formed_text(value)
        case float():
            return value if math.isfinite(value) else None
        case list():
            return [well_formed(item, levels - 1) for item in value]
        case dict():
            return {well_formed_text(key): well_formed(item, levels - 1) for key, item in value.items()}
        case _:
            return value


def value_at(value: JsonValue, *path: str | int) -> JsonValue:
    """Return what lies at a path of keys and positions; None where a step leads nowhere."""
    found = found_at(value, *path)
    return found[0] if found else None


def found_at(value: JsonValue, *path: str | int) -> tuple[JsonValue, ...]:
    """Return what lies at a path, alone in a tuple, or nothing: null is a value too."""
    for step in path:
        match value, step:
            case dict(), str() if step in value:
                value = value[step]
            case list(), int() if -len(value) <= step < len(value):
                value = value[step]
            case _:
                return ()
    return (value,)


def text_at(value: JsonValue, *path: str | int) -> str | None:
    """Return the text at a path; None when something else is there."""
    found = value_at(value, *path)
    return found if isinstance(found, str) else None


def count_at(value: JsonValue, *path: str | int) -> int | None:
    """Return the number of things at a path; None when something else is there, or more than can be counted."""
    found = value_at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 2**63 else None


def amount_at(value: JsonValue, *path: str | int) -> float | None:
    """Return the amount at a path; None when something else is there, or less than nothing."""
    found = value_at(value, *path)
    is_amount = isinstance(found, (int, float)) and not isinstance(found, bool) and 0 <= found < math.inf
    return float(found) if is_amount else None  # type: ignore[arg-type]  # it is a number


def objects_at(value: JsonValue, *path: str | int) -> list[JsonObject]:
    """Return the objects of the list at a path; empty when there is none."""
    found = value_at(value, *path)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
