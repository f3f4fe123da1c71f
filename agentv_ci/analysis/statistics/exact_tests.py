"""Exact one-sided tests of whether trials pass less often than before.

If a case is as good on both sides, chance spreads its passes over the trials of both. That gives
the hypergeometric distribution of one case: R. A. Fisher (1935), The logic of inductive inference,
Journal of the Royal Statistical Society 98. The passes of all cases together are a sum of such
numbers: W. G. Cochran (1954), Some methods for strengthening the common χ² tests, Biometrics 10; N.
Mantel and W. Haenszel (1959), Journal of the National Cancer Institute 22; in its exact form C. R.
Mehta, N. R. Patel and R. Gray (1985), JASA 80.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import NamedTuple

NEGLIGIBLE = 1e-18
"""A probability that no sum of them shows."""
EXACT_UP_TO = 400.0
"""The largest variance of the passes of all cases whose distribution is computed; beyond it, it is
close to normal.
"""


class Margins(NamedTuple):
    """Trials of a case on both sides, and how many of them pass on both together.

    This is what chance leaves as it is.
    """

    base: int
    head: int
    passed: int

    @property
    def fewest(self) -> int:
        """The fewest passes that the head can have."""
        return max(0, self.passed - self.base)

    @property
    def can_differ(self) -> bool:
        """Whether chance can spread the passes in more than one way."""
        return self.fewest < min(self.passed, self.head)


class Trials(NamedTuple):
    """Trials of a case on both sides, and how many of them pass."""

    base_passed: int
    base: int
    head_passed: int
    head: int

    @property
    def reversed(self) -> Trials:
        """The same with the sides exchanged, whose drop is a rise."""
        return Trials(self.head_passed, self.head, self.base_passed, self.base)

    @property
    def margins(self) -> Margins:
        """What is given when chance spreads the passes over the sides."""
        return Margins(self.base, self.head, self.base_passed + self.head_passed)


def rises(cases: Iterable[Trials]) -> list[Trials]:
    """Return cases with their sides exchanged, whose drops are rises."""
    return [case.reversed for case in cases]


def fisher(trials: Trials) -> float:
    """Return the probability of at most as many passes of the head by chance.

    It is that of one case.
    """
    return attainable(trials.margins)[trials.head_passed - trials.margins.fewest]


def cochran_mantel_haenszel(cases: Sequence[Trials]) -> float:
    """Return the probability of at most as many passes of the head by chance.

    It is that of all cases together. It never grows when a trial of the head that passes fails
    instead. Beyond a variance of EXACT_UP_TO, it is the normal approximation with a continuity
    correction.
    """
    uncertain = [case for case in cases if case.margins.can_differ]
    passed = sum(case.head_passed for case in uncertain)
    variance = math.fsum(map(_variance, uncertain))
    if variance > EXACT_UP_TO:
        mean = math.fsum(map(_mean, uncertain))
        return NormalDist(mean, math.sqrt(variance)).cdf(passed + 0.5)
    fewest, chances = 0, [1.0]
    for case in uncertain:
        chances = _convolved(chances, _probabilities(case.margins))
        skipped = next(index for index, chance in enumerate(chances) if chance > NEGLIGIBLE)
        fewest += case.margins.fewest + skipped
        chances = chances[skipped:]
    return min(1.0, math.fsum(chances[: max(0, passed - fewest + 1)]))


def _mean(case: Trials) -> float:
    """Return the mean number of passes of the head by chance."""
    return case.head * case.margins.passed / (case.base + case.head)


@lru_cache(maxsize=4096)
def attainable(margins: Margins) -> tuple[float, ...]:
    """Return Fisher's p-values of all ways to spread the passes, the largest drop first."""
    ways = _ways(margins)
    return _shares(accumulate(ways), sum(ways))


@lru_cache(maxsize=4096)
def _probabilities(margins: Margins) -> tuple[float, ...]:
    ways = _ways(margins)
    return _shares(ways, sum(ways))


def _shares(numbers: Iterable[int], total: int) -> tuple[float, ...]:
    return tuple(number / total for number in numbers)


def _ways(margins: Margins) -> list[int]:
    """Return in how many ways the head can have each number of passes, from the fewest."""
    base, head, passed = margins
    return [
        math.comb(head, number) * math.comb(base, passed - number)
        for number in range(margins.fewest, min(passed, head) + 1)
    ]


def _variance(case: Trials) -> float:
    base, head, passed = case.margins
    total = base + head
    return base * head * passed * (total - passed) / (total * total * (total - 1))


def _convolved(chances: Sequence[float], more: Sequence[float]) -> list[float]:
    """Return the distribution of a sum.

    The largest values that are practically impossible are left out.
    """
    sums = [0.0] * (len(chances) + len(more) - 1)
    for number, chance in enumerate(more):
        for index, other in enumerate(chances, number):
            sums[index] += chance * other
    while sums[-1] <= NEGLIGIBLE:
        sums.pop()
    return sums
