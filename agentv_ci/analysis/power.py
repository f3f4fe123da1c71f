"""How many trials show which change: what to know before an experiment.

The variance of the mean change is (between + within / trials) / cases: trials shrink only the second part, so an effect
that differs a lot from case to case needs more cases, not more trials. The two parts are those of a one-way analysis of
variance: S. R. Searle, G. Casella and C. E. McCulloch (1992), Variance components, chapter 3.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist

from msgspec import Struct

from agentv_ci.analysis import sequence
from agentv_ci.analysis.effects import Metric, Pair
from agentv_ci.analysis.student import critical

MOST_TRIALS = 10_000
STEPS = 60


class Spread(Struct, frozen=True):
    """Where the variance of the changes of a metric comes from, on the scale of the analysis."""

    within: float
    """From trial to trial of the same case."""
    between: float | None = None
    """From case to case; None where it is not known: then half of the cases are taken to change, and the others not."""


class Design(Struct, frozen=True):
    """What an experiment promises."""

    alpha: float
    power: float
    cases: int
    """Clusters, where cases form larger ones."""
    looks: bool = False
    """Whether it may stop early, which costs some of the power of its last look."""


def spread_of_pass_rate(rate: float) -> Spread:
    """Return the spread of pass or fail, where each trial of both arms passes at about this rate."""
    return Spread(within=2 * rate * (1 - rate))


def spread_of_trials(trials: Iterable[tuple[str, float]]) -> Spread | None:
    """Return the spread between two arms like one earlier run, from (case, value) of its trials.

    Pass logarithms for the scale `ratio`. None without a case that has two trials.
    """
    by_case: dict[str, list[float]] = {}
    for case, value in trials:
        by_case.setdefault(case, []).append(value)
    within = _within(by_case)
    return Spread(within=2 * within) if within is not None else None


def spread_of_pairs(metric: Metric, pairs: Iterable[Pair]) -> Spread | None:
    """Return the spread of an earlier experiment; None without two cases, one of which has two trials."""
    by_case: dict[str, list[float]] = {}
    for each in pairs:
        if (change := metric.change(each)) is not None:
            by_case.setdefault(each.case, []).append(change)
    within = _within(by_case)
    if within is None or len(by_case) < 2:
        return None
    means = [math.fsum(each) / len(each) for each in by_case.values()]
    from_trials = within * math.fsum(1 / len(each) for each in by_case.values()) / len(by_case)
    return Spread(within=within, between=max(0.0, _squares(means) / (len(means) - 1) - from_trials))


def detectable(spread: Spread, design: Design, trials: int) -> float | None:
    """Return the smallest mean change, on the scale of the analysis, that so many trials of each case find.

    None: these cases cannot show any change with this power.
    """
    distance = _distance(design)
    noise = spread.within / trials / design.cases
    if spread.between is not None:
        return distance * math.sqrt(spread.between / design.cases + noise)
    # Half of the cases change by 2x, the others not: the variance between them is x².
    rest = 1 - distance**2 / design.cases
    return distance * math.sqrt(noise / rest) if rest > 0 else None


def trials_needed(spread: Spread, design: Design, change: float) -> int | None:
    """Return how many trials of each case find a mean change; None: more than MOST_TRIALS, or no number of them."""
    candidates = range(1, MOST_TRIALS + 1)
    place = bisect_left(candidates, True, key=lambda trials: _finds(spread, design, trials, change))
    return candidates[place] if place < len(candidates) else None


def _finds(spread: Spread, design: Design, trials: int, change: float) -> bool:
    found = detectable(spread, design, trials)
    return found is not None and found <= change


def _distance(design: Design) -> float:
    """Return how many standard errors from 0 a change must be so that it is found with the power of the design."""
    if design.cases < 2 or 2.0 ** (1 - design.cases) > design.alpha:
        return math.inf
    beyond = math.copysign(critical(abs(2 * design.power - 1), design.cases - 1), design.power - 0.5)
    if not design.looks:
        return critical(1 - design.alpha, design.cases - 1) + beyond
    distance = NormalDist().inv_cdf(1 - design.alpha / 2) + beyond
    for _ in range(STEPS):
        alpha = math.erfc(sequence.boundary(design.alpha, distance) / math.sqrt(2))
        distance = critical(1 - alpha, design.cases - 1) + beyond
    return distance


def _within(by_case: Mapping[str, Sequence[float]]) -> float | None:
    degrees = sum(len(each) - 1 for each in by_case.values())
    return math.fsum(map(_squares, by_case.values())) / degrees if degrees else None


def _squares(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((each - mean) ** 2 for each in values)
