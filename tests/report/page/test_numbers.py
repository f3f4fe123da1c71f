"""Figures as people read them."""

from __future__ import annotations

import pytest

from agentv_ci.report.page.numbers import duration, large, money, share, signed


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (0, "$0.00"),
        (0.00000123, "$1e-06"),
        (0.0004, "$0.0004"),
        (0.0123, "$0.012"),
        (0.5, "$0.50"),
        (1234.5, "$1,234.50"),
    ],
)
def test_money(dollars: float, text: str) -> None:
    assert money(dollars) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0 ms"), (999, "999 ms"), (1234, "1.23 s"), (59_900, "59.9 s"), (90_000, "1.5 min"), (7_200_000, "2 h")],
)
def test_duration(milliseconds: float, text: str) -> None:
    assert duration(milliseconds) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (1, 2, "50%"),
        (1, 3, "33.3%"),
        (9999, 10_000, "99.9%"),
        (1, 10_000, "0.1%"),
        (0, 5, "0%"),
        (5, 5, "100%"),
        (0, 0, "–"),
    ],
)
def test_share_is_whole_only_when_it_is(part: int, whole: int, text: str) -> None:
    assert share(part, whole) == text


@pytest.mark.parametrize(
    ("number", "text"), [(999, "999"), (9_999, "9,999"), (12_345, "12.3 k"), (999_600, "1 M"), (1_500_000, "1.5 M")]
)
def test_large(number: int, text: str) -> None:
    assert large(number) == text


def test_signed() -> None:
    assert (signed(0.123), signed(-1)) == ("+12%", "−100%")
