"""Formatting of figures."""

from __future__ import annotations

import pytest

from agentv_ci.report.renderers.html import numbers
from agentv_ci.report.renderers.html.numbers import large, share
from tests.report.renderers.html.figures import EXAMPLES


@pytest.mark.parametrize(("name", "value", "text"), [(name, *each) for name in EXAMPLES for each in EXAMPLES[name]])
def test_format(name: str, value: float, text: str) -> None:
    assert getattr(numbers, name)(value) == text


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
def test_share(part: int, whole: int, text: str) -> None:
    assert share(part, whole) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *((999, "999"), (9_999, "9,999"), (12_345, "12.3 k"), (999_600, "1 M"), (1_500_000, "1.5 M")),
        (999_600_000, "1,000 M"),
    ],
)
def test_large(number: int, text: str) -> None:
    assert large(number) == text
