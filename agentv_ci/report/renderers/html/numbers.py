"""Figures as people read them; scripts of the page have the same rules, and one table tests both."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

LONGEST = 400
"""Digits that a number can have and still be rounded exactly."""

_UNITS = (("ms", 1, 1000), ("s", 1000, 60), ("min", 60_000, 60), ("h", 3_600_000, math.inf))


def fixed(value: float, places: int) -> str:
    """Return a number with so many places behind the point; halves go up."""
    context = Context(prec=LONGEST, rounding=ROUND_HALF_UP)
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-places), context=context):,f}"


def digits(value: float, number: int) -> str:
    """Return a number with so many digits that matter, as far as they say something."""
    text = f"{_rounded(value, number):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def score(value: float | None) -> str:
    """Return a score; a dash for none."""
    return "–" if value is None else fixed(value, 3)


def money(dollars: float) -> str:
    """Return an amount with as many digits as it needs to say something."""
    if 0 < dollars < 0.0001:
        return "<$0.0001"
    return f"${fixed(dollars, 2)}" if dollars == 0 or dollars >= 0.0995 else f"${digits(dollars, 2)}"


def duration(milliseconds: float) -> str:
    """Return a time with two or three digits."""
    # Rounded first: 59.96 s are 1 min.
    fits = (each for each in _UNITS if _rounded(milliseconds / each[1], 3) < each[2])
    name, unit, _ = next(fits, _UNITS[-1])
    return f"{digits(milliseconds / unit if unit == 1 else max(milliseconds / unit, 1), 3)} {name}"


def share(part: float, whole: float) -> str:
    """Return a share in per cent; never 100 % for less than all, nor 0 % for something."""
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
            return f"{digits(number / unit, 3) if number < 999 * unit else fixed(number / unit, 0)} {sign}"
    return f"{number:,}"


def signed(part: float) -> str:
    """Return a change of a share, in points of per cent."""
    return f"{'−' if part < 0 else '+'}{fixed(abs(part) * 100, 0)}%"


def _rounded(value: float, number: int) -> Decimal:
    return Context(prec=number, rounding=ROUND_HALF_UP).create_decimal(Decimal(value))
