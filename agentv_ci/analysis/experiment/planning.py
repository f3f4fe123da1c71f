"""How many trials show which change: what to know before an experiment.

The variance of the mean change is (between + within / trials) / cases: trials shrink only the
second part, so an effect that differs a lot from case to case needs more cases, not more trials.
The two parts are those of a one-way analysis of variance: S. R. Searle, G. Casella and C. E.
McCulloch (1992), Variance components, chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist, fmean

from msgspec import Struct

from agentv_ci.analysis.statistics import sequence
from agentv_ci.analysis.statistics.effects import LEAST_CLUSTERS, LEAST_ERROR, Metric, Pair
from agentv_ci.analysis.statistics.inference import first_of, sum_of_inverses, sum_of_squares
from agentv_ci.analysis.statistics.student import critical
from agentv_ci.base.mappings import gathered

MOST_TRIALS = 1_000
LARGEST = 1.0
"""The largest mean change: 1 of 1, or e times as much."""
CLOSE = 1e-6


class Spread(Struct, frozen=True):
    """How the changes of a metric vary, on the scale of the analysis."""

    within: float
    """Variance from trial to trial of the same case."""
    between: float | None = None
    """Variance from case to case; None where it is not known: then half of the cases are taken to
    change.
    """
    largest: float = 1.0
    """The largest change of one trial."""


class Design(Struct, frozen=True):
    """What an experiment promises."""

    alpha: float
    power: float
    cases: int
    """Clusters, where cases form larger ones."""
    looks: bool = False
    """Whether it may stop early, which costs some of the power of its last look."""


def spread_of_pass_rate(rate: float) -> Spread:
    """Return the spread of pass or fail.

    Each trial of both arms passes at about this rate.
    """
    return Spread(within=2 * rate * (1 - rate))


def spread_of_trials(trials: Iterable[tuple[str, float]]) -> Spread | None:
    """Return the spread between two arms like one earlier run, from (case, value) of its trials.

    Pass logarithms for the scale `ratio`. None without a case that has two trials.
    """
    by_case = gathered(trials)
    within = _within(by_case)
    if within is None:
        return None
    largest = max(max(values) - min(values) for values in by_case.values())
    return Spread(within=2 * within, largest=largest)


def spread_of_pairs(metric: Metric, pairs: Iterable[Pair]) -> Spread | None:
    """Return the spread of an earlier experiment.

    None without two cases, one of which has two trials.
    """
    changes: list[tuple[str, float]] = []
    for pair in pairs:
        change = metric.change(pair)
        if change is not None:
            changes.append((pair.case, change))
    by_case = gathered(changes)
    within = _within(by_case)
    if within is None or len(by_case) < LEAST_CLUSTERS:
        return None
    means = list(map(fmean, by_case.values()))
    from_trials = within * sum_of_inverses(map(len, by_case.values())) / len(by_case)
    between = max(0.0, sum_of_squares(means) / (len(means) - 1) - from_trials)
    largest = max(abs(change) for _, change in changes)
    return Spread(within=within, between=between, largest=largest)


def detectable(spread: Spread, design: Design, trials: int) -> float | None:
    """Return the smallest mean change that so many trials of each case find.

    It is on the scale of the analysis. None: these cases cannot show any change that is small
    enough to matter, however many trials there are.
    """
    if 2.0 ** (1 - design.cases) > design.alpha:
        return None
    low, high = 0.0, LARGEST
    if not _finds(spread, design, trials, high):
        return None
    while high - low > CLOSE:
        middle = (low + high) / 2
        if _finds(spread, design, trials, middle):
            high = middle
        else:
            low = middle
    return high


def trials_needed(spread: Spread, design: Design, change: float) -> int | None:
    """Return how many trials of each case find a mean change.

    None: more than MOST_TRIALS, or no number of them.
    """
    if 2.0 ** (1 - design.cases) > design.alpha:
        return None
    numbers = range(1, MOST_TRIALS + 1)
    return first_of(numbers, lambda trials: _finds(spread, design, trials, change))


def _finds(spread: Spread, design: Design, trials: int, change: float) -> bool:
    """Whether a change is found.

    The error counts cases as drawn by lot, but only trials vary from run to run.
    """
    noise = spread.within / trials / design.cases
    unseen = spread.largest**2 / trials / design.cases / (design.cases - 1)
    if spread.between is not None:
        between = spread.between / design.cases
    else:
        # Half of the cases change by 2x, the others not: the variance between them is that of x.
        between = change**2 / (design.cases - 1)
    error = max(math.sqrt(between + noise + unseen), LEAST_ERROR)
    beyond = NormalDist().inv_cdf(design.power) * math.sqrt(noise)
    return change >= _errors_needed(design, change / error) * error + beyond


def _errors_needed(design: Design, drift: float) -> float:
    """Return how many standard errors from 0 an estimate is significant."""
    alpha = design.alpha
    if design.looks:
        alpha = sequence.alpha_at(alpha, drift)
    if alpha <= sequence.LEAST_P:
        return math.inf
    return critical(alpha, design.cases - 1)


def _within(by_case: Mapping[str, Sequence[float]]) -> float | None:
    degrees = sum(map(len, by_case.values())) - len(by_case)
    if not degrees:
        return None
    return math.fsum(map(sum_of_squares, by_case.values())) / degrees
