"""Read untrusted JSON: limit its depth, and replace invalid numbers and characters."""

from __future__ import annotations

import json
import math
import re
from sys import float_info
from typing import TYPE_CHECKING

from agentv_ci.base.text import shortened, unfenced, well_formed_text

if TYPE_CHECKING:
    # Cleaning a text needs no contracts.
    from agentv_ci.contracts.base import JsonObject, JsonValue

MAX_DEPTH = 200
"""Levels of JSON; low enough for every recursive reader."""
LEAST_BYTES, LEAST_OBJECTS = 8, 1_000
"""Bytes of an object in a file that a tool has written, but for this many."""

_MAY_BE_ILL_FORMED = re.compile(r"[\ud800-\udfff]|\\u[dD]")
"""What lone surrogates look like in JSON; the text is searched much faster than its value."""


def read_json(text: str, *, strict: bool = False, names_constants: bool = False) -> JsonValue:
    """Return the well-formed value of a JSON text.

    Raises ValueError, also if it is nested too deep.

    NaN, Infinity and numbers beyond float become null, with `strict` they raise. With
    `names_constants` they become their names, and a key that occurs twice raises: readers differ in
    which one counts.
    """
    if text.startswith("\ufeff"):
        raise ValueError("it begins with a byte order mark")
    decoder = _NAMING if names_constants else _LENIENT
    if strict:
        decoder = _STRICT
    try:
        value: JsonValue = decoder.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    is_flat = text.count("[") + text.count("{") < MAX_DEPTH
    is_plain = text.isascii() and "\\u" not in text
    if is_flat and (is_plain or _MAY_BE_ILL_FORMED.search(text) is None):
        return value
    return well_formed(value)


def require_text(content: bytes) -> bytes:
    """Return JSON whose objects have names and values.

    Raises ValueError: millions without take gigabytes.
    """
    if content.count(b"{") * LEAST_BYTES > len(content) + LEAST_OBJECTS:
        raise ValueError("it has more objects than text")
    return content


def json_or_none(text: str) -> JsonValue:
    """Return the value of a JSON text; None for any other text."""
    try:
        return read_json(text)
    except ValueError:
        return None


def object_at_position(text: str, start: int) -> tuple[JsonObject, int] | None:
    """Return the JSON object that begins at a position, and where it ends.

    None if there is no whole one.
    """
    try:
        value, end = _LENIENT.raw_decode(text, start)
        value = well_formed(value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return value, end


def refuse_constant(constant: str) -> None:
    """Raise ValueError for NaN and Infinity."""
    raise ValueError(f"{constant} is not JSON")


def finite_number(number: str) -> float:
    """Return a number of JSON; raises ValueError if it is beyond all floats."""
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"{shortened(number, 40)} is too large for a number")
    return value


def _unique(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    by_key = dict(pairs)
    if len(by_key) < len(pairs):
        raise ValueError("a key occurs twice")
    return by_key


def _finite_or_none(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None


def _finite_or_text(number: str) -> float | str:
    value = float(number)
    return value if math.isfinite(value) else number


# Made once: `json.loads` would make one for each text.
_STRICT = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite_number)
_NAMING = json.JSONDecoder(
    parse_constant=str, parse_float=_finite_or_text, object_pairs_hook=_unique
)
_LENIENT = json.JSONDecoder(parse_constant=lambda _: None, parse_float=_finite_or_none)


def read_answer(text: str) -> JsonValue:
    """Return the JSON value of an answer, without its code fence; raises ValueError."""
    try:
        return read_json(unfenced(text), strict=True)
    except ValueError as error:
        around = ""
        if "```" in text and unfenced(text) == text:
            around = "; there is text around the code fence"
        raise ValueError(f"{error}{around}") from error


def read_unique(text: str) -> JsonValue:
    """Read strict JSON in which no key occurs twice: readers differ in which one counts.

    Raises ValueError.
    """
    try:
        json.loads(text, object_pairs_hook=_unique, parse_int=str, parse_float=str)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return read_json(text, strict=True)


def well_formed(value: JsonValue, levels: int = MAX_DEPTH) -> JsonValue:
    """Return JSON without lone surrogates, NaN and infinite numbers.

    Raises ValueError for more than `levels`.
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
            return {
                well_formed_text(key): well_formed(item, levels - 1) for key, item in value.items()
            }
        case _:
            return value


def value_at(value: JsonValue, *path: str | int) -> JsonValue:
    """Return the value at a path of keys and positions; None if it does not exist."""
    found = found_at(value, *path)
    return found[0] if found else None


def found_at(value: JsonValue, *path: str | int) -> tuple[JsonValue, ...]:
    """Return the value at a path in a tuple, which is empty if it does not exist.

    Null is a value.
    """
    for step in path:
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return ()
            value = value[step]
        elif isinstance(value, list) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return ()
    return (value,)


def text_at(value: JsonValue, *path: str | int) -> str | None:
    """Return the string at a path, or None."""
    text = value_at(value, *path)
    return text if isinstance(text, str) else None


def count_at(value: JsonValue, *path: str | int) -> int | None:
    """Return the integer at a path, or None; it must not be negative or beyond 64 bits."""
    count = value_at(value, *path)
    if not isinstance(count, int) or isinstance(count, bool):
        return None
    return count if 0 <= count < 2**63 else None


def amount_at(value: JsonValue, *path: str | int) -> float | None:
    """Return the finite number at a path, or None; it must not be negative."""
    amount = value_at(value, *path)
    if not isinstance(amount, (int, float)) or isinstance(amount, bool):
        return None
    return float(amount) if 0 <= amount <= float_info.max else None


def objects_at(value: JsonValue, *path: str | int) -> list[JsonObject]:
    """Return the objects in the list at a path."""
    items = value_at(value, *path)
    if not isinstance(items, list):
        return []
    return [item for item in items if isinstance(item, dict)]
