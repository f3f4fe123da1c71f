"""Compare JSON values: equality, numbers and dates."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from agentv_ci.base.json_access import found_at
from agentv_ci.contracts.answer_evaluators import ComparedField, field_steps
from agentv_ci.contracts.base import JsonValue

MAX_EXPONENT = 10_000
"""Larger exponents are not compared as numbers."""


def reference_problem(field: ComparedField, reference: JsonValue) -> str | None:
    """Return why the reference is unusable for a field: it is missing or not of the right type.

    None if it is fine.
    """
    found = found_at(reference, *field_steps(field.path))
    if not found:
        return f"field '{field.path}' is missing"
    if field.match == "numeric_tolerance" and number_of(found[0]) is None:
        return f"field '{field.path}' is not a number"
    if field.match == "date" and moment_of(found[0]) is None:
        return f"field '{field.path}' is not an ISO 8601 date"
    return None


def is_same(one: JsonValue, other: JsonValue) -> bool:
    """Whether two JSON values are equal: 1 equals 1.0, but not true."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
        case list(), list():
            return len(one) == len(other) and all(map(is_same, one, other))
        case _:
            return isinstance(one, bool) == isinstance(other, bool) and one == other


def number_of(value: JsonValue) -> Decimal | None:
    """Return the number of a number or a numeric string; None for other values."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        # By its shortest decimal form, so that 0.3 - 0.2 is 0.1.
        number = Decimal(str(value).replace("_", "?"))
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number.adjusted()) > MAX_EXPONENT:
        return None
    return number


def moment_of(value: JsonValue) -> date | datetime | None:
    """Return the date or time of an ISO 8601 string; None for other values."""
    if not isinstance(value, str):
        return None
    for kind in (date, datetime):
        with suppress(ValueError):
            return kind.fromisoformat(value.strip())
    return None


def is_same_moment(one: date | datetime, other: date | datetime) -> bool:
    """Whether two dates or times are the same; compared with a date, a time counts as its date."""
    if isinstance(one, datetime) and isinstance(other, datetime):
        if (one.tzinfo is None) != (other.tzinfo is None):
            return one.replace(tzinfo=None) == other.replace(tzinfo=None)
        return one == other
    return _day(one) == _day(other)


def _day(moment: date | datetime) -> date:
    return moment.date() if isinstance(moment, datetime) else moment
