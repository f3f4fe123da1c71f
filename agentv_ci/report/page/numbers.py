"""Figures as people read them."""

from __future__ import annotations


def money(dollars: float) -> str:
    """Return an amount with as many digits as it needs to say something."""
    if dollars == 0 or dollars >= 1:
        return f"${dollars:,.2f}"
    return f"${dollars:.2f}" if dollars >= 0.1 else f"${dollars:.2g}" if dollars >= 0.0001 else f"${dollars:.0e}"


def duration(milliseconds: float) -> str:
    """Return a time with two or three digits."""
    seconds = milliseconds / 1000
    if seconds < 1:
        return f"{milliseconds:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    if seconds < 3600:
        return f"{seconds / 60:.3g} min"
    return f"{seconds / 3600:.3g} h"


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
            return f"{number / unit:.3g} {sign}" if number < 1_000 * unit else f"{number / unit:,.0f} {sign}"
    return f"{number:,}"


def signed(part: float) -> str:
    """Return a change of a share, in points of per cent."""
    return f"{part * 100:+.0f}%".replace("-", "−")
