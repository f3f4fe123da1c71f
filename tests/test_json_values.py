"""Values are compared as their authors mean it."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.evaluators import FieldAccuracyEvaluator
from agentv_ci.contracts.results import EvaluatorResult
from agentv_ci.json_values import is_same, is_same_moment, moment_of, number_of
from tests.evaluate.builders import assess

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


@settings(derandomize=True, max_examples=200)
@given(VALUES)
def test_value_is_the_same_as_what_its_json_says(value: Any) -> None:
    assert is_same(value, json.loads(json.dumps(value)))


@settings(derandomize=True, max_examples=200)
@given(VALUES, VALUES)
def test_sameness_does_not_depend_on_the_side(one: Any, other: Any) -> None:
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
def test_sameness_is_that_of_json(one: Any, other: Any, same: bool) -> None:
    assert is_same(one, other) is same


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.1, Decimal("0.1")),
        ("0.10", Decimal("0.1")),
        (" 7 ", Decimal(7)),
        ("-1e3", Decimal(-1000)),
        (10**400, Decimal(10) ** 400),
        ("1_000", None),
        ("1,000", None),
        ("", None),
        ("NaN", None),
        ("inf", None),
        ("-Infinity", None),
        ("sNaN", None),
        ("0x10", None),
        ("1 2", None),
        ("1e99999999999999999999999", None),
        (True, None),
        (None, None),
        ([1], None),
        ({}, None),
    ],
)
def test_number_is_what_the_digits_say(value: Any, number: Decimal | None) -> None:
    assert number_of(value) == number


@settings(derandomize=True, max_examples=200)
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
def test_moments_are_compared_as_moments_and_days_as_days(one: str, other: str, same: bool) -> None:
    moments = [moment_of(each) for each in (one, other)]
    assert moments[0] is not None
    assert moments[1] is not None
    assert is_same_moment(moments[0], moments[1]) is same
    assert is_same_moment(moments[1], moments[0]) is same


@pytest.mark.parametrize(
    "value", ["2030-02-30", "02.01.2030", "tomorrow", "", "2030", "2030-01-02T", 20300102, None, [], "0000-01-01"]
)
def test_what_is_no_day_is_none(value: Any) -> None:
    assert moment_of(value) is None


@settings(derandomize=True, max_examples=200)
@given(
    st.text()
    | st.dates().map(date.isoformat)
    | st.datetimes(timezones=st.none() | st.timezones()).map(datetime.isoformat)
)
def test_no_text_breaks_the_reading_of_days(text: str) -> None:
    found = moment_of(text)
    assert found is None or is_same_moment(found, found)


def compare(ours: Any, theirs: Any, **given: Any) -> EvaluatorResult:
    settings = {"name": "f", "type": "field_accuracy", "reference": {"v": theirs}, "fields": [{"path": "v", **given}]}
    return assess(FieldAccuracyEvaluator.model_validate(settings), json.dumps({"v": ours}))


@pytest.mark.parametrize(
    "answer",
    ["9e9999999", "-9e9999999", "9e999999999", "1e-9999999", "1e400", 10**4000, "1" * 100_000, "0." + "1" * 9_999],
)
def test_number_of_an_answer_is_right_or_wrong_and_breaks_nothing(answer: Any) -> None:
    outcome = compare(answer, 1, match="numeric_tolerance", tolerance=0.01)
    assert (outcome.status, outcome.score) == ("ok", 0.0)


@pytest.mark.parametrize(
    ("ours", "theirs", "tolerance", "score"),
    [
        (0.3, 0.1, 0.2, 1.0),
        ("0.3", 0.1, 0.2, 1.0),
        (1.1, 1.0, 0.1, 1.0),
        (1.1000001, 1.0, 0.1, 0.0),
        (-1, 1, 2, 1.0),
        (10**30 + 1, 10**30, 0.5, 0.0),
        (10**30 + 1, 10**30, 0, 0.0),
        ("1e30", 10**30, 0, 1.0),
    ],
)
def test_tolerance_is_kept_to_the_last_digit(ours: Any, theirs: Any, tolerance: float, score: float) -> None:
    assert compare(ours, theirs, match="numeric_tolerance", tolerance=tolerance).score == score
