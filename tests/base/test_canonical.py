"""Canonical JSON, compared with the reference implementation of RFC 8785 and with a JavaScript engine's numbers."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from agentv_ci.base.canonical import MAX_LEVELS, canonical, canonical_json, digest_of_value, exact, exact_json
from agentv_ci.contracts.base import JsonValue

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53) + 1, 2**53 - 1)
texts = st.text(st.characters(codec="utf-8"))
values = st.recursive(
    st.none() | st.booleans() | numbers | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)
)


@given(values)
@example({"\ufb33": 1, "😀": 2, "é": "😀 \u2028", "a": '\n"b"\u0001', "": [{}, [], None, True, False]})
@example([-0.0, 2.0, 1e21, 1e-7, 0.000001, 123456789012345680000.0, -1.5e-9])
def test_canonical_form_is_that_of_rfc_8785(value: JsonValue) -> None:
    assert canonical(value).encode() == rfc8785.dumps(value)


@given(values | st.integers() | st.dictionaries(st.text("\ue000\uffff\U00010000\U0010ffffa"), st.integers()))
@example({"\ufb33": 1, "😀": 2, "é": "😀 \u2028", "a": '\n"b"\u0001\x7f', "": [{}, [], None, True, False]})
@example([2**53 - 1, 2**53, -(2**53), 2**64, 10**400, 1e16, 0.1234567890123456, "9007199254740993"])
def test_json_text_has_the_canonical_form_of_its_value(value: JsonValue) -> None:
    for text in (json.dumps(value, indent=2), json.dumps(value, ensure_ascii=False)):
        assert canonical_json(text.encode()).decode() == canonical(value)
        assert exact_json(text.encode()).decode() == exact(value)


@given(st.integers(0, 2**64 - 1))
def test_every_double_is_written_as_ecmascript_does(bits: int) -> None:
    (number,) = struct.unpack("d", struct.pack("Q", bits))
    if math.isfinite(number):
        assert canonical(number).encode() == rfc8785.dumps(number)


def test_exact_form_differs_in_large_integers_alone() -> None:
    value: JsonValue = {"b": [1.0, 2**53 - 1], "a": 2**53 + 1}
    assert exact(value) == '{"a":9007199254740993,"b":[1,9007199254740991]}'
    assert canonical(value) == '{"a":9007199254740992,"b":[1,9007199254740991]}'


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: (v,), lambda v: {"a": v}, lambda v: frozenset({v})])
def test_digest_of_a_value_depends_on_its_upper_levels(wrap: Callable[[object], object]) -> None:
    def digest(leaf: object, levels: int) -> str:
        for _ in range(levels):
            leaf = wrap(leaf)
        return digest_of_value(leaf)

    assert digest(1, MAX_LEVELS + 1) != digest(2, MAX_LEVELS + 1)
    assert digest(1, MAX_LEVELS + 2) == digest(2, MAX_LEVELS + 2)


@given(st.integers(min_value=2**53))
def test_large_integers_are_not_taken_for_their_neighbours(number: int) -> None:
    assert exact(number) != exact(number + 1)
    assert canonical(number) == canonical(float(number)) if number < 2**1000 else True


def test_what_is_not_json_is_refused() -> None:
    for number in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="not a JSON number"):
            canonical([number])
    with pytest.raises(AssertionError):
        canonical((1, 2))  # type: ignore[arg-type]
