"""Find when the level of a series changed, with a bound on the probability of a false alarm.

If nothing changed, every order of the values is equally likely (a permutation test, J. Antoch and
M. Hušková (2001), Permutation tests in change point analysis, Statistics & Probability Letters 53).
The values after a moment are then a sample of m of all n values without replacement, and Markov's
inequality for the exponential of their sum S (H. Chernoff (1952), Annals of Mathematical Statistics
23) gives

    P(S ≥ s) ≤ exp(-λs) · e(y) / C(n, m) ≤ exp(-λs) · r⁻ᵐ · Π(1 + r·yᵢ) / C(n, m),    yᵢ = exp(λxᵢ),

for all λ, r > 0, where e(y) is the sum of the products of any m of the yᵢ: a coefficient of Π(1 +
r·yᵢ), which has no negative ones. The least bound is where a logistic regression of "after the
moment" on the values is most likely. It holds for any values, any number of them and any ties, and
is exact when every value after is beyond every value before. All moments in both directions are
tested, so the bound counts as often as there are tests (Bonferroni).

Values may be in strata, such as the scores of one answer: then only orders within a stratum are
equally likely.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from statistics import fmean
from typing import NamedTuple

from msgspec import Struct

from agentv_ci.base.mappings import gathered

LEAST = 5
"""Values that are needed before and after a change."""
PROMISING = 2.5
"""Standard deviations below which a change is not looked at further."""
STEPS = 30
HALVINGS = 10
NEGLIGIBLE = 1e-4

Observation = tuple[Hashable, float]
"""Stratum and value."""


class Shift(Struct, frozen=True):
    """A change of level."""

    start: int
    """Position of the first value after it."""
    before: float
    """Mean before; of strata, those that are on both sides count."""
    after: float


def number_of_tests(length: int) -> int:
    """Return how many tests a series of this length takes: each moment, in both directions."""
    return 2 * max(0, length - 2 * LEAST + 1)


def latest_shift(values: Sequence[Observation], level: float, least: float = 0.0) -> Shift | None:
    """Return the last change of level, by at least `least`; None if there is none.

    `level` is the accepted probability of a false alarm divided by the number of all tests, see
    `number_of_tests`.
    """
    begin, latest = 0, None
    while (start := _split(values[begin:], level)) is not None:
        shift = _shift(values[begin:], start, begin)
        if abs(shift.after - shift.before) >= least:
            latest = shift
        begin += start
    return latest


def levels(values: Sequence[Observation], level: float) -> list[float]:
    """Return the means between all changes of level, the oldest first; of values in one stratum."""
    if (start := _split(values, level)) is not None:
        return [*levels(values[:start], level), *levels(values[start:], level)]
    if not values:
        return []
    return [fmean(value for _, value in values)]


def _split(values: Sequence[Observation], level: float) -> int | None:
    """Return the position of the most obvious change; None if it may be chance."""
    series = _series(values)
    bounds = {start: _log_bound(series, start) for start in _candidates(series)}
    best = min(bounds, key=bounds.__getitem__, default=None)
    if best is None or bounds[best] > math.log(level):
        return None
    return best


class _Series(Struct, frozen=True):
    strata: tuple[Hashable, ...]
    centred: tuple[float, ...]
    """Differences from the mean of the stratum, in standard deviations of all of them."""
    variances: Mapping[Hashable, float]
    """Sum of the squares of each stratum, divided by one less than its size."""
    sizes: Mapping[Hashable, int]


def _series(values: Sequence[Observation]) -> _Series:
    means = {stratum: fmean(own) for stratum, own in gathered(values).items()}
    differences = [value - means[stratum] for stratum, value in values]
    total = math.fsum(difference * difference for difference in differences)
    deviation = math.sqrt(total / max(1, len(values))) or 1.0
    centred = tuple(difference / deviation for difference in differences)
    strata = tuple(stratum for stratum, _ in values)
    squares: defaultdict[Hashable, float] = defaultdict(float)
    for stratum, difference in zip(strata, centred, strict=True):
        squares[stratum] += difference * difference
    sizes = Counter(strata)
    variances = {stratum: total / max(1, sizes[stratum] - 1) for stratum, total in squares.items()}
    return _Series(strata, centred, variances, sizes)


def _candidates(series: _Series) -> set[int]:
    """Return the moments after which the sum is farthest from 0.

    One is farthest in itself, the other in its standard deviations.
    """
    late: Counter[Hashable] = Counter()
    total, variance, length = 0.0, 0.0, len(series.centred)
    sums, deviations = dict[int, float](), dict[int, float]()
    for start in range(length - 1, LEAST - 1, -1):
        stratum = series.strata[start]
        size, number = series.sizes[stratum], late[stratum]
        # The variance of a sum of m of n values is m(n - m)/n of theirs.
        variance += series.variances[stratum] * (size - 2 * number - 1) / size
        late[stratum] += 1
        total += series.centred[start]
        if length - start >= LEAST and variance > NEGLIGIBLE:
            sums[start], deviations[start] = abs(total), abs(total) / math.sqrt(variance)
    if not sums or max(deviations.values()) < PROMISING:
        return set()
    return {max(sums, key=sums.__getitem__), max(deviations, key=deviations.__getitem__)}


def _log_bound(series: _Series, begin: int) -> float:
    """Return the logarithm of the bound for the values from a position on.

    The regression has an intercept log r for each stratum, and the slope λ.
    """
    log_ways: list[float] = []
    odds: dict[Hashable, float] = {}
    for name, late in Counter(series.strata[begin:]).items():
        early = series.sizes[name] - late
        # A stratum on one side only says nothing of the change.
        if early:
            log_ways.append(_log_choices(series.sizes[name], late))
            odds[name] = math.log(late / early)
    points = _points(series, begin, odds.keys())
    surprise = _surprise(points, _fitted(points, _Regression(0.0, odds)))
    return min(0.0, surprise - math.fsum(log_ways))


def _points(series: _Series, begin: int, strata: AbstractSet[Hashable]) -> list[_Point]:
    """Return the different values, each with how often it occurs."""
    pairs = [*zip(series.strata, series.centred, strict=True)]
    late = Counter(pairs[begin:])
    points: list[_Point] = []
    for pair, number in Counter(pairs).items():
        stratum, value = pair
        if stratum in strata:
            points.append(_Point(stratum, value, number, late[pair]))
    return points


class _Point(NamedTuple):
    stratum: Hashable
    value: float
    number: int
    late: int
    """How many of them are after the moment."""


class _Regression(Struct, frozen=True):
    slope: float
    intercepts: Mapping[Hashable, float]

    def moved(self, step: _Regression, size: float) -> _Regression:
        intercepts = {
            name: own + size * step.intercepts[name] for name, own in self.intercepts.items()
        }
        return _Regression(self.slope + size * step.slope, intercepts)


def _fitted(points: Sequence[_Point], regression: _Regression) -> _Regression:
    """Return a more likely regression, by Newton's method; any one gives a bound."""
    least = _surprise(points, regression)
    for _ in range(STEPS):
        better = _improved(points, regression, least)
        if better is None:
            break
        regression, before, least = better, least, _surprise(points, better)
        if before - least < NEGLIGIBLE:
            break
    return regression


def _improved(
    points: Sequence[_Point], regression: _Regression, surprise: float
) -> _Regression | None:
    """Return the first of ever smaller steps that is more likely; None without one."""
    step = _step(points, regression)
    if step is None:
        return None
    for halvings in range(HALVINGS):
        moved = regression.moved(step, 0.5**halvings)
        if _surprise(points, moved) < surprise:
            return moved
    return None


def _log_choices(size: int, chosen: int) -> float:
    return math.lgamma(size + 1) - math.lgamma(chosen + 1) - math.lgamma(size - chosen + 1)


def _surprise(points: Sequence[_Point], regression: _Regression) -> float:
    """Return the negative log-likelihood of a logistic regression."""
    slope, intercepts = regression.slope, regression.intercepts
    terms: list[float] = []
    for name, value, number, late in points:
        score = intercepts[name] + slope * value
        terms.append(number * _softplus(score) - late * score)
    return math.fsum(terms)


def _softplus(value: float) -> float:
    if value > 0:
        return value + math.log1p(math.exp(-value))
    return math.log1p(math.exp(value))


def _step(points: Sequence[_Point], regression: _Regression) -> _Regression | None:
    """Return the step of Newton's method; None where the values leave nothing to improve."""
    gradient, curvature, own = _derivatives(points, regression)
    if any(second < NEGLIGIBLE**2 for _, second, _ in own.values()):
        return None
    rest = curvature - math.fsum(cross * cross / second for _, second, cross in own.values())
    if rest < NEGLIGIBLE**2:
        return None
    explained = math.fsum(first * cross / second for first, second, cross in own.values())
    slope = -(gradient - explained) / rest
    intercepts: dict[Hashable, float] = {}
    for name, (first, second, cross) in own.items():
        intercepts[name] = -(first + cross * slope) / second
    return _Regression(slope, intercepts)


def _derivatives(
    points: Iterable[_Point], regression: _Regression
) -> tuple[float, float, Mapping[Hashable, Sequence[float]]]:
    """Return the first and second derivatives of the surprise by the slope.

    Also, of each stratum, the derivative by its intercept, the second one, and that by the
    intercept and the slope.
    """
    gradient, curvature = 0.0, 0.0
    own = {name: [0.0, 0.0, 0.0] for name in regression.intercepts}
    for name, value, number, late in points:
        share = math.exp(-_softplus(-regression.intercepts[name] - regression.slope * value))
        error, weight = number * share - late, number * share * (1 - share)
        gradient += error * value
        curvature += weight * value * value
        sums = own[name]
        sums[0] += error
        sums[1] += weight
        sums[2] += weight * value
    return gradient, curvature, own


def _shift(values: Sequence[Observation], start: int, begin: int) -> Shift:
    """Return a change with the means before and after.

    A value of a stratum is compared with the stratum's mean.
    """
    by_stratum = gathered(values[:start])
    before: list[float] = []
    after: list[float] = []
    for stratum, value in values[start:]:
        if stratum in by_stratum:
            before.append(fmean(by_stratum[stratum]))
            after.append(value)
    return Shift(begin + start, fmean(before), fmean(after))
