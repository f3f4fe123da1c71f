"""JSON values are compared by value: equality, numbers and dates."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.base.json_values import is_same, is_same_moment, moment_of, number_of

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
)


@given(VALUES, VALUES)
def test_equality_is_symmetric_and_survives_json(one: Any, other: Any) -> None:
    assert is_same(one, json.loads(json.dumps(one)))
    assert is_same(one, other) == is_same(other, one)
    assert not is_same(one, [one])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (True, 1, False),
        (False, 0, False),
        (None, False, False),
        (None, 0, False),
        ("", None, False),
        ("1", 1, False),
        ([], {}, False),
        ([True], [1], False),
        ({"a": [{"b": 0}]}, {"a": [{"b": False}]}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1.0}, True),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        (2**53 + 1, float(2**53), False),
        ("é", "e\u0301", False),
    ],
)
def test_equality_is_that_of_json(one: Any, other: Any, same: bool) -> None:
    assert is_same(one, other) is same


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.1, Decimal("0.1")),
        ("0.10", Decimal("0.1")),
        (" 7 ", Decimal(7)),
        ("-1e3", Decimal(-1000)),
        (10**400, Decimal(10) ** 400),
        *(
            (text, None)
            for text in ("", "1_000", "1,000", "NaN", "inf", "-Infinity", "sNaN", "0x10", "1 2", "1" * 100_000)
        ),
        *((text, None) for text in ("1e99999999999999999999999", "9e9999999", "1e-9999999")),
        (True, None),
        (None, None),
        ([1], None),
        ({}, None),
    ],
)
def test_number_of_a_value(value: Any, number: Decimal | None) -> None:
    assert number_of(value) == number


@given(st.text() | st.text("0123456789eE+-._ nNaAiIfF"))
def test_no_text_breaks_the_reading_of_numbers(text: str) -> None:
    found = number_of(text)
    assert found is None or found.is_finite()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2030-01-02", "20300102", True),
        ("2030-01-02", "2030-W01-3", True),
        ("2030-01-02", "2030-01-02T23:59:59Z", True),
        ("2030-01-02", "2030-01-03T00:30:00+01:00", False),
        ("2030-01-02T12:00Z", "2030-01-02T13:00+01:00", True),
        ("2030-01-02T12:00:00Z", "2030-01-02 12:00", True),
        ("2030-01-02T12:00", "2030-01-02T12:00:00.000001", False),
        ("0001-01-01T00:00+23:59", "0001-01-01T00:00Z", False),
        ("9999-12-31T23:59-23:59", "9999-12-31T23:59Z", False),
    ],
)
def test_times_and_dates_are_compared(one: str, other: str, same: bool) -> None:
    moments = [moment_of(each) for each in (one, other)]
    assert moments[0] is not None
    assert moments[1] is not None
    assert is_same_moment(moments[0], moments[1]) is same
    assert is_same_moment(moments[1], moments[0]) is same


@pytest.mark.parametrize(
    "value", ["2030-02-30", "02.01.2030", "tomorrow", "", "2030", "2030-01-02T", 20300102, None, [], "0000-01-01"]
)
def test_text_that_is_not_a_date_is_none(value: Any) -> None:
    assert moment_of(value) is None


@given(
    st.text()
    | st.dates().map(date.isoformat)
    | st.datetimes(timezones=st.none() | st.timezones()).map(datetime.isoformat)
)
def test_no_text_breaks_the_reading_of_days(text: str) -> None:
    found = moment_of(text)
    assert found is None or is_same_moment(found, found)
