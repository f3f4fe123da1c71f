"""Format figures for people, by the same rules as `figures.js`; one table tests both."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

LONGEST = 400
"""Digits up to which a number is rounded exactly."""

_UNITS = (("ms", 1, 1000), ("s", 1000, 60), ("min", 60_000, 60), ("h", 3_600_000, math.inf))


def fixed(value: float, places: int) -> str:
    """Return a number with `places` decimal places; halves are rounded up."""
    context = Context(prec=LONGEST, rounding=ROUND_HALF_UP)
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-places), context=context):,f}"


def digits(value: float, number: int) -> str:
    """Return a number with `number` significant digits, without trailing zeros."""
    text = f"{_rounded(value, number):,f}"
    if "." in text:
        return text.rstrip("0").rstrip(".")
    return text


def score(value: float | None) -> str:
    """Return a score, or a dash for None."""
    if value is None:
        return "–"
    return fixed(value, 3)


def money(dollars: float) -> str:
    """Return an amount in dollars with as many digits as it needs."""
    if 0 < dollars < 0.0001:
        return "<$0.0001"
    if dollars == 0 or dollars >= 0.0995:
        return f"${fixed(dollars, 2)}"
    return f"${digits(dollars, 2)}"


def duration(milliseconds: float) -> str:
    """Return a time with up to three significant digits."""
    # Rounded first: 59.96 s are 1 min.
    fits = (unit for unit in _UNITS if _rounded(milliseconds / unit[1], 3) < unit[2])
    name, unit, _ = next(fits, _UNITS[-1])
    return f"{digits(milliseconds / unit if unit == 1 else max(milliseconds / unit, 1), 3)} {name}"


def share(part: float, whole: float) -> str:
    """Return a share as a percentage: 100% only for all, 0% only for none."""
    if not whole:
        return "–"
    text = f"{part / whole * 100:.1f}"
    if text == "100.0" and part < whole:
        text = "99.9"
    if text == "0.0" and part > 0:
        text = "0.1"
    return f"{text.removesuffix('.0')}%"


def large(number: int) -> str:
    """Return a number in thousands or millions."""
    for unit, sign in ((1_000_000, "M"), (1_000, "k")):
        if number >= (10_000 if unit == 1_000 else 999_500):
            count = number / unit
            return f"{digits(count, 3) if count < 999 else fixed(count, 0)} {sign}"
    return f"{number:,}"


def signed(part: float) -> str:
    """Return a change of a share in percentage points."""
    return f"{'−' if part < 0 else '+'}{fixed(abs(part) * 100, 0)}%"


def _rounded(value: float, number: int) -> Decimal:
    return Context(prec=number, rounding=ROUND_HALF_UP).create_decimal(Decimal(value))
