"""Which cases got worse beyond chance: exact tests of their trials.

If a case is as good on both sides, the trials that pass are spread over the sides by chance, which gives Fisher's exact
test: R. A. Fisher (1935), The logic of inductive inference, Journal of the Royal Statistical Society 98. A case of
which nearly all trials pass can hardly show a drop, however they fall; it hardly counts as a test, either. So the share
of wrong calls is bounded by what each case can show: S. Döhler, G. Durand and E. Roquain (2018), New FDR bounds for
discrete and heterogeneous tests, Electronic Journal of Statistics 12.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

MOST_PASSES = 1000
"""Of the test of all cases together."""


class Trials(NamedTuple):
    """Graded trials of a case on both sides, and how many of them pass."""

    base_passed: int
    base: int
    head_passed: int
    head: int

    @property
    def reversed(self) -> Trials:
        """The same with the sides exchanged, whose drop is a rise."""
        return Trials(self.head_passed, self.head, self.base_passed, self.base)

    @property
    def margins(self) -> _Margins:
        """What is given when chance spreads the passes over the sides."""
        return _Margins(self.base, self.head, self.base_passed + self.head_passed)


class _Margins(NamedTuple):
    """Trials of both sides, and how many pass on both together."""

    base: int
    head: int
    passed: int


_Kinds = Mapping[_Margins, int]
"""How many cases have which margins."""


def p_of_drop(trials: Trials) -> float:
    """Return the probability that chance lets the head pass at most as often as it does (one-sided)."""
    return _attainable(trials.margins)[trials.head_passed - _fewest(trials.margins)]


def dropped(cases: Sequence[Trials], rate: float) -> tuple[bool, ...]:
    """Return which cases got worse, of which on average at most this share is wrongly named.

    So if no case has changed, any is named with a probability of at most `rate`. The step-down procedure finds single
    cases, the step-up one many at once. Which of them is used depends on what the cases can show, not on what they do.
    """
    p_values = [p_of_drop(each) for each in cases]
    kinds = Counter(each.margins for each in cases if _can_differ(each))
    least = min((_attainable(kind)[0] for kind in kinds), default=1.0)
    finds_one = least < 1 and _expected(kinds, least, least) <= rate
    last = _step_down(p_values, kinds, rate) if finds_one else _step_up(p_values, kinds, rate)
    return tuple(each <= last for each in p_values)


def _step_down(p_values: Iterable[float], kinds: _Kinds, rate: float) -> float:
    """Return the largest p-value that is called; −1: none."""
    last = -1.0
    for rank, p_value in enumerate(sorted(each for each in p_values if each < 1), 1):
        if _expected(kinds, p_value, p_value) > rate * rank:
            break
        last = p_value
    return last


def _step_up(p_values: Iterable[float], kinds: _Kinds, rate: float) -> float:
    """Return the largest p-value that is called; −1: none."""
    largest = _largest(kinds, rate)
    ranked = enumerate(sorted(each for each in p_values if each <= largest), 1)
    return max((each for rank, each in ranked if _expected(kinds, each, largest) <= rate * rank), default=-1.0)


def p_of_total_drop(cases: Sequence[Trials]) -> float:
    """Return the probability that chance lets the head pass at most as often in all cases together (one-sided).

    With more than MOST_PASSES passes in cases that differ, it is 1: the work grows with their square, and a mean of so
    many cases or a single one of so many trials shows a drop as well.
    """
    uncertain = [each for each in cases if _can_differ(each)]
    if sum(each.margins.passed for each in uncertain) > MOST_PASSES:
        return 1.0
    ways = [1]
    for each in uncertain:
        ways = _convolved(ways, [_ways(each.margins, number) for number in range(each.margins.passed + 1)])
    return sum(ways[: sum(each.head_passed for each in uncertain) + 1]) / sum(ways)


def _can_differ(trials: Trials) -> bool:
    """Whether chance can spread the passes in more than one way."""
    return len(_attainable(trials.margins)) > 1


def _largest(kinds: _Kinds, rate: float) -> float:
    """Return the largest p-value that may be called at all."""
    total = sum(kinds.values())
    candidates = sorted({each for kind in kinds for each in _attainable(kind) if each < 1})
    place = 0
    while place < len(candidates) and _expected(kinds, candidates[place], candidates[place]) <= rate * total:
        place += 1
    return candidates[place - 1] if place else -1.0


def _expected(kinds: _Kinds, p_value: float, largest: float) -> float:
    """Return a bound of how many cases have at most this p-value by chance."""
    return math.fsum(number * _reached(kind, p_value) / (1 - _reached(kind, largest)) for kind, number in kinds.items())


def _reached(kind: _Margins, p_value: float) -> float:
    """Return the probability of a p-value that is at most this one."""
    attainable = _attainable(kind)
    place = bisect_right(attainable, p_value)
    return attainable[place - 1] if place else 0.0


@lru_cache(maxsize=4096)
def _attainable(kind: _Margins) -> tuple[float, ...]:
    """Return the p-values of all ways to spread the passes, the largest drop first."""
    ways = [_ways(kind, number) for number in range(_fewest(kind), min(kind.passed, kind.head) + 1)]
    total = sum(ways)
    return tuple(each / total for each in accumulate(ways))


def _fewest(kind: _Margins) -> int:
    return max(0, kind.passed - kind.base)


def _ways(kind: _Margins, head_passed: int) -> int:
    """Return in how many ways this many of all passes are the head's."""
    return math.comb(kind.head, head_passed) * math.comb(kind.base, kind.passed - head_passed)


def _convolved(one: Sequence[int], other: Sequence[int]) -> list[int]:
    found = [0] * (len(one) + len(other) - 1)
    for place, ways in enumerate(one):
        for more, others in enumerate(other):
            found[place + more] += ways * others
    return found
