"""Canonical JSON (RFC 8785), so that digests are the same in every language."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import lru_cache
from json.encoder import encode_basestring
from math import isfinite
from pathlib import PurePath
from typing import assert_never

from msgspec import Raw
from msgspec.json import Decoder, Encoder

from agentv_ci.contracts.base import JsonValue

EXACT = 2**53
"""Every smaller integer is exact as a double."""

MAX_LEVELS = 50
"""Levels of a Python value; deeper ones count by their type."""


def canonical(value: JsonValue) -> str:
    """Return the canonical JSON of a value; raises ValueError for a number that is not finite.

    RFC 8785: no white space, keys ordered by UTF-16 code units (3.2.3), numbers as in ECMAScript
    (3.2.2.3), integers from 2⁵³ on as the nearest double; integers beyond all doubles keep their
    digits.
    """
    return _text(value, _nearest)


def exact(value: JsonValue) -> str:
    """Return the canonical JSON of a value, except that large integers keep all digits."""
    return _text(value, str)


def canonical_json(text: bytes) -> bytes:
    """Return the canonical form of a JSON text, several times as fast as that of its value."""
    has_large = _MANY_DIGITS in text.translate(_KINDS)
    rewritten = None if has_large else _rewritten(text)
    return rewritten or canonical(json.loads(text)).encode()


def exact_json(text: bytes) -> bytes:
    """Return the canonical form of a JSON text, except that large integers keep all digits."""
    return _rewritten(text) or exact(json.loads(text)).encode()


def digest_of(text: str) -> str:
    """Return the hexadecimal SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def digest_of_value(value: object) -> str:
    """Return the SHA-256 of any Python value.

    Objects without a comparable form count by their type.
    """
    return digest_of(json.dumps(_canonical(value, MAX_LEVELS)))


def _canonical(value: object, levels: int) -> JsonValue:
    match value:
        case str() | bool() | float() | None:
            return repr(value)
        case int():
            return hex(value)
        case bytes() | date() | PurePath():
            return f"{type(value).__name__}: {value!r}"
        case Mapping() | set() | frozenset() | list() | tuple() if levels < 0:
            return type(value).__qualname__
        case Mapping():
            pairs = (
                [_canonical(name, levels - 1), _canonical(value[name], levels - 1)]
                for name in value
            )
            return sorted(pairs, key=json.dumps)
        case set() | frozenset():
            return sorted((_canonical(item, levels - 1) for item in value), key=json.dumps)
        case list() | tuple():
            return [_canonical(item, levels - 1) for item in value]
        case _:
            return type(value).__qualname__


def _text(value: JsonValue, large: Callable[[int], str]) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, dict):
        # Most values are texts, which need no call of their own.
        members = [
            written
            + (encode_basestring(item) if type(item := value[key]) is str else _text(item, large))
            for key, written in _in_order(tuple(value))
        ]
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join([_text(item, large) for item in value])}]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < EXACT else large(value)
    if isinstance(value, float):
        return _number(value)
    assert_never(value)


def _nearest(value: int) -> str:
    try:
        return _number(float(value))
    except OverflowError:
        return str(value)


@lru_cache(maxsize=1_000)
def _in_order(keys: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the keys of an object in order, each with its JSON.

    Cached, since many objects have the same keys.
    """
    ordered = sorted(keys, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    return tuple((key, f"{encode_basestring(key)}:") for key in ordered)


def _rewritten(text: bytes) -> bytes | None:
    """Return a JSON text with ordered keys and canonical numbers.

    None if its keys may have another order.

    msgspec orders keys by code points. Those above U+FFFF are surrogates in UTF-16, which precede
    U+E000 to U+FFFF.
    """
    written = _ORDERED.encode(_AS_WRITTEN.decode(text))
    kinds = b"" if written.isascii() else written.translate(_KINDS)
    if _SURROGATES in kinds and _AFTER_SURROGATES in kinds:
        return None
    return written


@lru_cache(maxsize=1_000)
def _raw_number(text: str) -> Raw:
    return Raw(_number(float(text)).encode())


_AS_WRITTEN = Decoder(float_hook=_raw_number)
_ORDERED = Encoder(order="sorted")
_SURROGATES, _AFTER_SURROGATES = b"\xff", b"\xfe"
"""First bytes of the characters above U+FFFF, and of those from U+E000 on, after `translate`; UTF-8
has neither.
"""
_KINDS = bytes.maketrans(
    b"0123456789\xf0\xf1\xf2\xf3\xf4\xee\xef", b"0" * 10 + _SURROGATES * 5 + _AFTER_SURROGATES * 2
)
_MANY_DIGITS = b"0" * len(str(EXACT))


def _number(value: float) -> str:
    """Format a number like ECMAScript's Number::toString (ECMA-262, 6.1.6.1.20)."""
    if not isfinite(value):
        raise ValueError(f"{value} is not a JSON number")
    if value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    if 1e-6 <= abs(value) < 1e21:
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent):+d}"
