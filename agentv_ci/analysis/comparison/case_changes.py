"""Which cases got worse, among all of them.

A case of which nearly all trials pass can hardly show a drop, however they fall, so it hardly
counts as a test. The share of wrong calls is bounded by what each case can show: S. Döhler, G.
Durand and E. Roquain (2018), New FDR bounds for discrete and heterogeneous tests, Electronic
Journal of Statistics 12. A case that got better must not hide one that got worse, so it is
discarded: Q. Zhao, D. S. Small and W. Su (2019), Multiple testing when many p-values are uniformly
conservative, JASA 114.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from agentv_ci.analysis.statistics.exact_tests import Margins, Trials, attainable, fisher

DISCARDED = 0.85
"""Cases with a larger p-value are discarded; those that are kept pay with the probability to be
kept.
"""
OF_DISCARDED = math.inf
"""In place of the p-value of a case that is discarded."""
NOTHING = -1.0
"""A p-value that nothing reaches."""
TOLERANCE = 1e-9
"""Relative: ten additions of a tenth are not one."""


class _Test(NamedTuple):
    p_value: float
    attainable: tuple[float, ...]
    """All p-values that it could have had, the smallest first."""


_Kinds = Mapping[tuple[float, ...], int]
"""How many tests can have which p-values."""


def dropped(cases: Sequence[Trials], rate: float) -> tuple[bool, ...]:
    """Return, for each case, whether it got worse.

    On average at most the share `rate` of those that are named did not. So if no case got worse,
    any is named with a probability of at most `rate`. The step-down procedure finds single cases,
    the step-up one many at once. Which of them is used depends on what the cases can show, not on
    what they do.
    """
    p_values = list(map(_p_value, cases))
    tests = [
        _Test(p_value, _kept_p_values(case.margins))
        for case, p_value in zip(cases, p_values, strict=True)
        if p_value != OF_DISCARDED and case.margins.can_differ
    ]
    largest = _largest_called(tests, rate)
    return tuple(p_value <= largest for p_value in p_values)


def _p_value(case: Trials) -> float:
    """Return the p-value of a case, given that it is not discarded."""
    p_value, limit = fisher(case), _discarding_limit(case.margins)
    return p_value / limit if p_value <= limit else OF_DISCARDED


def can_be_called(margins: Margins, rate: float) -> bool:
    """Whether the largest drop of a case is called at this rate if no other case could show one."""
    smallest = _kept_p_values(margins)[0]
    return smallest < 1 and smallest / (1 - smallest) <= rate * (1 + TOLERANCE)


@lru_cache(maxsize=4096)
def _discarding_limit(margins: Margins) -> float:
    """Return the smallest p-value of a case that is at least DISCARDED.

    By chance, the case has at most this p-value with that probability.
    """
    return next((p_value for p_value in attainable(margins) if p_value >= DISCARDED), 1.0)


@lru_cache(maxsize=4096)
def _kept_p_values(margins: Margins) -> tuple[float, ...]:
    """Return the p-values of a case that is not discarded, given that it is not."""
    limit = _discarding_limit(margins)
    return tuple(p_value / limit for p_value in attainable(margins) if p_value <= limit)


def _largest_called(tests: Sequence[_Test], rate: float) -> float:
    kinds = Counter(test.attainable for test in tests)
    smallest = min((kind[0] for kind in kinds), default=1.0)
    finds_one = smallest < 1 and _is_within(_expected(kinds, smallest, smallest), rate)
    p_values = sorted(test.p_value for test in tests if test.p_value < 1)
    return _step_down(p_values, kinds, rate) if finds_one else _step_up(p_values, kinds, rate)


def _step_down(p_values: Iterable[float], kinds: _Kinds, rate: float) -> float:
    """Return the largest p-value that is called."""
    largest = NOTHING
    for rank, p_value in enumerate(p_values, 1):
        if not _is_within(_expected(kinds, p_value, p_value), rate * rank):
            break
        largest = p_value
    return largest


def _step_up(p_values: Iterable[float], kinds: _Kinds, rate: float) -> float:
    """Return the largest p-value that is called."""
    limit = _largest_callable(kinds, rate)
    largest = NOTHING
    for rank, p_value in enumerate(p_values, 1):
        if p_value <= limit and _is_within(_expected(kinds, p_value, limit), rate * rank):
            largest = p_value
    return largest


def _largest_callable(kinds: _Kinds, rate: float) -> float:
    """Return the largest p-value that the step-up procedure may call at all."""
    total, largest = sum(kinds.values()), NOTHING
    for p_value in sorted({*chain.from_iterable(kinds)}):
        if p_value >= 1 or not _is_within(_expected(kinds, p_value, p_value), rate * total):
            break
        largest = p_value
    return largest


def _expected(kinds: _Kinds, p_value: float, largest: float) -> float:
    """Return a bound of how many tests have at most this p-value by chance."""
    return math.fsum(
        number * _reached(kind, p_value) / (1 - _reached(kind, largest))
        for kind, number in kinds.items()
    )


def _is_within(expected: float, allowed: float) -> bool:
    return expected <= allowed * (1 + TOLERANCE)


def _reached(kind: Sequence[float], p_value: float) -> float:
    """Return the probability of a p-value that is at most this one."""
    count = bisect_right(kind, p_value)
    return kind[count - 1] if count else 0.0
