"""Values of JSON documents, compared as their authors mean it."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.evaluators import ComparedField, field_steps
from agentv_ci.json_access import found_at

MAX_EXPONENT = 10_000
"""Beyond all that is counted or measured."""


def unfit_reference(field: ComparedField, reference: JsonValue) -> str | None:
    """Return why no answer can be right about a field, which the reference has not or not in the right form."""
    found = found_at(reference, *field_steps(field.path))
    if not found:
        return f"has no '{field.path}'"
    if field.match == "numeric_tolerance" and number_of(found[0]) is None:
        return f"has no number at '{field.path}'"
    if field.match == "date" and moment_of(found[0]) is None:
        return f"has no ISO 8601 date at '{field.path}'"
    return None


def is_same(one: JsonValue, other: JsonValue) -> bool:
    """Equality of JSON: 1 is 1.0, and true is not 1."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
        case list(), list():
            return len(one) == len(other) and all(map(is_same, one, other))
        case _:
            return isinstance(one, bool) == isinstance(other, bool) and one == other


def number_of(value: JsonValue) -> Decimal | None:
    """Return the number that a value is, or that a text spells; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        # Of a float the shortest digits that mean it: 0.3 is 0.1 from 0.2, whatever binary fractions say.
        number = Decimal(str(value).replace("_", "?"))
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) <= MAX_EXPONENT else None


def moment_of(value: JsonValue) -> date | datetime | None:
    """Return the day or the moment that an ISO 8601 text names; None for everything else."""
    if not isinstance(value, str):
        return None
    for kind in (date, datetime):
        with suppress(ValueError):
            return kind.fromisoformat(value.strip())
    return None


def is_same_moment(one: date | datetime, other: date | datetime) -> bool:
    """Whether two moments are one; beside a day alone, a moment is the day it is written with."""
    if isinstance(one, datetime) and isinstance(other, datetime):
        if (one.tzinfo is None) != (other.tzinfo is None):
            return one.replace(tzinfo=None) == other.replace(tzinfo=None)
        return one == other
    days = [each.date() if isinstance(each, datetime) else each for each in (one, other)]
    return days[0] == days[1]
