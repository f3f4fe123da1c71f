"""The canonical form of JSON: RFC 8785, so that every language comes to the same digest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from json.encoder import encode_basestring
from math import isfinite

from agentv_ci.contracts.base import JsonObject, JsonValue

EXACT = 2**53
"""Below this every integer is a double, and is written alike whether it was read as one or not."""


def canonical(value: JsonValue) -> str:
    """Return the canonical JSON of a value; raises ValueError for a number that is not finite.

    RFC 8785: no white space, keys in the order of their UTF-16 code units (3.2.3), numbers as ECMAScript writes them
    (3.2.2.3). Beyond it, an integer of 2⁵³ and above keeps all its digits, so that none is taken for its neighbour.
    """
    pieces: list[str] = []
    _write(value, pieces.append)
    return "".join(pieces)


def digest_of(value: JsonValue) -> str:
    """Return the SHA-256 of a value's canonical form, as hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode("utf-8")).hexdigest()


def _write(value: JsonValue, write: Callable[[str], None]) -> None:
    match value:
        case str():
            write(encode_basestring(value))
        case dict():
            _write_object(value, write)
        case list():
            _write_array(value, write)
        case None:
            write("null")
        case bool():
            write("true" if value else "false")
        case int():
            write(str(value))
        case float():
            write(_number(value))


def _write_object(members: JsonObject, write: Callable[[str], None]) -> None:
    # Below U+10000 the order of code units is that of the characters.
    keys = sorted(members) if all(map(str.isascii, members)) else sorted(members, key=_code_units)
    separator = "{"
    for key in keys:
        value = members[key]
        if isinstance(value, str):  # most values are, and a call takes longer than they do
            write(f"{separator}{encode_basestring(key)}:{encode_basestring(value)}")
        else:
            write(f"{separator}{encode_basestring(key)}:")
            _write(value, write)
        separator = ","
    write("}" if members else "{}")


def _write_array(items: list[JsonValue], write: Callable[[str], None]) -> None:
    separator = "["
    for item in items:
        write(separator)
        _write(item, write)
        separator = ","
    write("]" if items else "[]")


def _code_units(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _number(value: float) -> str:
    """Write a number as ECMAScript's Number::toString does (ECMA-262, 6.1.6.1.20)."""
    if not isfinite(value):
        raise ValueError(f"{value} is no number of JSON")
    if value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    mantissa, _, exponent = repr(value).partition("e")
    mantissa = mantissa.removesuffix(".0")
    if not exponent:
        return mantissa
    power = int(exponent)
    sign = "-" if value < 0 else ""
    digits = mantissa.lstrip("-").replace(".", "")
    if 0 < power < 21:
        return sign + digits.ljust(power + 1, "0")
    if -7 < power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    return f"{mantissa}e{power:+d}"
