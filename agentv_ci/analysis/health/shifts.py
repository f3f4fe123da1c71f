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
from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from msgspec import Struct

LEAST = 5
"""Values that are needed before and after a change."""
PROMISING = 2.5
"""Standard deviations below which a change is not looked at further."""
STEPS = 30
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
    begin, found = 0, None
    while (place := _split(values[begin:], level)) is not None:
        shift = _shift(values[begin:], place, begin)
        found = shift if abs(shift.after - shift.before) >= least else found
        begin += place
    return found


def levels(values: Sequence[Observation], level: float) -> list[float]:
    """Return the means between all changes of level, the oldest first; of values in one stratum."""
    if (place := _split(values, level)) is not None:
        return [*levels(values[:place], level), *levels(values[place:], level)]
    return [math.fsum(value for _, value in values) / len(values)] if values else []


def _split(values: Sequence[Observation], level: float) -> int | None:
    """Return the position of the most obvious change; None if it may be chance."""
    series = _series(values)
    bounds = {place: _log_bound(series, place) for place in _candidates(series)}
    best = min(bounds, key=bounds.__getitem__, default=None)
    return best if best is not None and bounds[best] <= math.log(level) else None


class _Series(Struct, frozen=True):
    strata: tuple[Hashable, ...]
    centred: tuple[float, ...]
    """Differences from the mean of the stratum, in standard deviations of all of them."""
    variances: Mapping[Hashable, float]
    """Sum of the squares of each stratum, divided by one less than its size."""
    sizes: Mapping[Hashable, int]


def _series(values: Sequence[Observation]) -> _Series:
    by_stratum: defaultdict[Hashable, list[float]] = defaultdict(list)
    for stratum, value in values:
        by_stratum[stratum].append(value)
    means = {stratum: math.fsum(each) / len(each) for stratum, each in by_stratum.items()}
    differences = [value - means[stratum] for stratum, value in values]
    deviation = (
        math.sqrt(math.fsum(each * each for each in differences) / max(1, len(values))) or 1.0
    )
    centred = tuple(each / deviation for each in differences)
    squares: defaultdict[Hashable, float] = defaultdict(float)
    for (stratum, _), difference in zip(values, centred, strict=True):
        squares[stratum] += difference * difference
    sizes = {stratum: len(each) for stratum, each in by_stratum.items()}
    variances = {stratum: each / max(1, sizes[stratum] - 1) for stratum, each in squares.items()}
    return _Series(tuple(stratum for stratum, _ in values), centred, variances, sizes)


def _candidates(series: _Series) -> set[int]:
    """Return the moments after which the sum is farthest from 0: in itself, and in its standard deviations."""
    late: Counter[Hashable] = Counter()
    total, variance, length = 0.0, 0.0, len(series.centred)
    sums: dict[int, float] = {}
    deviations: dict[int, float] = {}
    for place in range(length - 1, LEAST - 1, -1):
        stratum = series.strata[place]
        size, number = series.sizes[stratum], late[stratum]
        # The variance of a sum of m of n values is m(n - m)/n of theirs.
        variance += series.variances[stratum] * (size - 2 * number - 1) / size
        late[stratum] += 1
        total += series.centred[place]
        if length - place >= LEAST and variance > NEGLIGIBLE:
            sums[place], deviations[place] = abs(total), abs(total) / math.sqrt(variance)
    if not sums or max(deviations.values()) < PROMISING:
        return set()
    return {max(sums, key=sums.__getitem__), max(deviations, key=deviations.__getitem__)}


def _log_bound(series: _Series, place: int) -> float:
    """Return the logarithm of the bound for the values from a position on.

    The regression has an intercept log r for each stratum, and the slope λ.
    """
    late = Counter(series.strata[place:])
    # A stratum on one side only says nothing of the change.
    mixed = {name for name, number in late.items() if number < series.sizes[name]}
    ways = math.fsum(_log_choices(series.sizes[name], late[name]) for name in mixed)
    start = _Regression(
        0.0, {name: math.log(late[name] / (series.sizes[name] - late[name])) for name in mixed}
    )
    points = _points(series, place, mixed)
    return min(0.0, _surprise(points, _fitted(points, start)) - ways)


def _points(series: _Series, place: int, strata: AbstractSet[Hashable]) -> list[_Point]:
    """Return the different values, each with how often it occurs."""
    pairs = [*zip(series.strata, series.centred, strict=True)]
    late = Counter(pairs[place:])
    return [
        _Point(*pair, number, late[pair])
        for pair, number in Counter(pairs).items()
        if pair[0] in strata
    ]


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
            name: each + size * step.intercepts[name] for name, each in self.intercepts.items()
        }
        return _Regression(self.slope + size * step.slope, intercepts)


def _fitted(points: Sequence[_Point], regression: _Regression) -> _Regression:
    """Return a more likely regression, by Newton's method; any one gives a bound."""
    least = _surprise(points, regression)
    for _ in range(STEPS):
        step = _step(points, regression)
        tries = (
            (regression.moved(step, 0.5**halvings) for halvings in range(10))
            if step is not None
            else ()
        )
        better = next((each for each in tries if _surprise(points, each) < least), None)
        if better is None:
            break
        regression, before, least = better, least, _surprise(points, better)
        if before - least < NEGLIGIBLE:
            break
    return regression


def _log_choices(size: int, chosen: int) -> float:
    return math.lgamma(size + 1) - math.lgamma(chosen + 1) - math.lgamma(size - chosen + 1)


def _surprise(points: Sequence[_Point], regression: _Regression) -> float:
    """Return the negative log-likelihood of a logistic regression."""
    slope, intercepts = regression.slope, regression.intercepts
    scores = (
        (intercepts[name] + slope * value, number, late) for name, value, number, late in points
    )
    return math.fsum(number * _softplus(score) - late * score for score, number, late in scores)


def _softplus(value: float) -> float:
    return value + math.log1p(math.exp(-value)) if value > 0 else math.log1p(math.exp(value))


def _step(points: Sequence[_Point], regression: _Regression) -> _Regression | None:
    """Return the step of Newton's method; None where the values leave nothing to improve."""
    gradient, curvature = 0.0, 0.0
    # Of each stratum: the derivative by its intercept, the second one, and that by the intercept
    # and the slope.
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
    if any(second < NEGLIGIBLE**2 for _, second, _ in own.values()):
        return None
    rest = curvature - math.fsum(cross * cross / second for _, second, cross in own.values())
    if rest < NEGLIGIBLE**2:
        return None
    slope = (
        -(gradient - math.fsum(first * cross / second for first, second, cross in own.values()))
        / rest
    )
    return _Regression(
        slope,
        {name: -(first + cross * slope) / second for name, (first, second, cross) in own.items()},
    )


def _shift(values: Sequence[Observation], place: int, begin: int) -> Shift:
    """Return a change with the means before and after.

    A value of a stratum is compared with the stratum's mean.
    """
    before: defaultdict[Hashable, list[float]] = defaultdict(list)
    for stratum, value in values[:place]:
        before[stratum].append(value)
    pairs = [
        (math.fsum(before[name]) / len(before[name]), value)
        for name, value in values[place:]
        if name in before
    ]
    means = (math.fsum(each) / len(pairs) for each in zip(*pairs, strict=True))
    return Shift(begin + place, next(means), next(means))
