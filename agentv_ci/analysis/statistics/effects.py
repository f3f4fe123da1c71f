"""The effect of a change on one metric, from pairs of the same case and trial on both sides.

Cases of one cluster are alike, and so are trials of one case. The standard error therefore counts
clusters, not trials: it is the cluster-robust one with the correction CR2, and the degrees of
freedom are those of the same correction: R. M. Bell and D. F. McCaffrey (2002), Bias reduction in
standard errors for linear regression with multi-stage samples, Survey Methodology 28. With clusters
of one size, it is Student's t of the means of the clusters at clusters − 1. A quantile has no such
formula; its standard error is from a bootstrap of whole clusters: A. C. Cameron, J. B. Gelbach and
D. L. Miller (2008), Bootstrap-based improvements for inference with clustered errors, Review of
Economics and Statistics 90.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from statistics import fmean
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.statistics import sequence
from agentv_ci.analysis.statistics.inference import sum_of_inverses, sum_of_squares
from agentv_ci.analysis.statistics.student import critical, two_sided_p

Scale = Literal["difference", "ratio"]
"""`difference`: head − base, for what has a fixed range. `ratio`: head / base, for costs, tokens
and times.
"""
LEAST_CLUSTERS = 2
DRAWS = 1000
"""Of the bootstrap of a quantile."""
LARGEST_LOG = 700.0
"""Of a ratio that is a finite number."""
LEAST_ERROR = 1e-9
"""Of an estimate whose clusters all agree."""


class Pair(Struct, frozen=True):
    """One trial of one case on both sides."""

    cluster: str
    """Cases of the same cluster are not independent; by default, each case is its own."""
    case: str
    trial: int
    base: float
    head: float


class Metric(Struct, frozen=True):
    """What is compared, and which change of it is good."""

    name: str
    scale: Scale = "difference"
    higher_is_better: bool = True
    margin: float | None = None
    """The largest change that does not matter, above 0.

    A difference, or a share (0.1: 10%) on the scale `ratio`.
    """
    quantile: float | None = None
    """Compare this quantile over all trials (0.95: p95) instead of the mean; only on the scale
    `ratio`.
    """
    non_inferiority: bool = False
    """Whether all that is asked is that the head is not worse by the margin or more."""

    def scaled(self, change: float) -> float:
        """Return a difference or a relative change on the scale of the analysis."""
        if self.scale == "ratio":
            return math.log1p(change)
        return change

    def change(self, pair: Pair) -> float | None:
        """Return the change of a pair on the scale of the analysis.

        None: a ratio with a value of 0 or less.
        """
        if self.scale == "difference":
            return pair.head - pair.base
        if min(pair.base, pair.head) <= 0:
            return None
        return math.log(pair.head / pair.base)


class Effect(Struct, frozen=True):
    """How much a metric changes, and how precisely that is known.

    All values are on the scale of the analysis: differences, or natural logarithms of ratios;
    `natural` returns what people read.
    """

    metric: Metric
    estimate: float
    error: float
    """The standard error."""
    degrees: float
    """Degrees of freedom of Student's t."""
    clusters: int
    cases: int
    pairs: int
    """Pairs that count; on the scale `ratio`, those with a value of 0 or less do not."""
    method: str
    """How it was computed, for people to read."""
    smallest: float | None = None
    """The effect that the plan is made to find, when p-values and intervals hold at all looks at
    once.
    """
    unseen: float = 0.0
    """The part of `error`² that one more pair than was seen adds; it falls with the square of the
    number of cases.
    """

    @property
    def margin(self) -> float | None:
        """The margin of the metric."""
        if self.metric.margin is None:
            return None
        return self.metric.scaled(self.metric.margin)

    @property
    def p_value(self) -> float:
        """The probability of a change this large by chance (two-sided)."""
        return self.p_against(0.0)

    @property
    def p_equivalent(self) -> float | None:
        """The p-value against a change as large as the margin or larger.

        1 unless the estimate is smaller.
        """
        if self.margin is None:
            return None
        if abs(self.estimate) >= self.margin:
            return 1.0
        return max(self.p_against(-self.margin), self.p_against(self.margin))

    @property
    def p_not_worse(self) -> float | None:
        """The p-value against a change for the worse as large as the margin.

        1 unless the estimate is better.
        """
        if self.margin is None:
            return None
        if self.metric.higher_is_better:
            limit, is_better = -self.margin, self.estimate > -self.margin
        else:
            limit, is_better = self.margin, self.estimate < self.margin
        return self.p_against(limit) if is_better else 1.0

    def p_against(self, change: float) -> float:
        """Return the two-sided p-value against a change.

        The interval at 1 − alpha excludes the change if p ≤ alpha. The p-value is never below the
        share of the two most extreme of all patterns of signs of the clusters, which is exact.
        """
        p_value = two_sided_p((self.estimate - change) / self.error, self.degrees)
        if self.smallest is not None:
            p_value = sequence.p_value(sequence.normal_z(p_value), self._drift)
        return max(p_value, self._least_p)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the interval of the change.

        A difference lies between −1 and 1, a ratio may have no bounds.
        """
        half = self._reach(1 - confidence) * self.error
        low, high = self.estimate - half, self.estimate + half
        if self.metric.scale == "difference":
            return max(-1.0, low), min(1.0, high)
        return low, high

    def natural(self, value: float) -> float:
        """Return a value as people read it: a difference, or a relative change (0.08: 8% more)."""
        if self.metric.scale == "difference":
            return value
        if value >= LARGEST_LOG:
            return math.inf
        return math.expm1(value)

    def _reach(self, alpha: float) -> float:
        """Return how many standard errors from the estimate the interval ends."""
        if alpha < self._least_p:
            return math.inf
        if self.smallest is not None:
            alpha = sequence.alpha_at(alpha, self._drift)
        if alpha <= sequence.LEAST_P:
            return math.inf
        return critical(alpha, self.degrees)

    @property
    def _least_p(self) -> float:
        return 2.0 ** (1 - self.clusters)

    @property
    def _drift(self) -> float:
        assert self.smallest is not None, "only of looks"
        return self.smallest / self.error


def effect(
    metric: Metric, pairs: Iterable[Pair], *, seed: int = 0, smallest: float | None = None
) -> Effect | None:
    """Return the effect on a metric; None with fewer than two clusters, which show no spread.

    Each case weighs the same, whatever its number of trials; the order of pairs does not matter.
    `seed` is that of the bootstrap of a quantile. With `smallest`, the effect that the plan is made
    to find (a difference, or a share), the result holds at all looks at once: pass the pairs of all
    trials so far at each of them, and the same value. Raises ValueError unless it is above 0: no
    interval of any size would ever be decided.
    """
    if smallest is not None and smallest <= 0:
        raise ValueError(f"an effect of {smallest:g} cannot be found")
    counted = _counted(metric, pairs)
    clusters = _by_cluster(counted)
    if len(clusters) < LEAST_CLUSTERS:
        return None
    if metric.quantile is not None:
        measured = _of_quantile(metric, metric.quantile, clusters, seed)
    else:
        measured = _of_mean(metric, clusters)
    if smallest is None:
        return measured
    return replace(measured, smallest=metric.scaled(smallest))


_Cases = Mapping[str, Sequence[Pair]]


def _counted(metric: Metric, pairs: Iterable[Pair]) -> list[Pair]:
    """Return the pairs that have a change on the scale.

    Their order depends on nothing else.
    """
    has_change = [pair for pair in pairs if metric.change(pair) is not None]
    return sorted(has_change, key=attrgetter("cluster", "case", "trial"))


def _by_cluster(pairs: Sequence[Pair]) -> Mapping[str, _Cases]:
    clusters: dict[str, dict[str, list[Pair]]] = {}
    for pair in pairs:
        clusters.setdefault(pair.cluster, {}).setdefault(pair.case, []).append(pair)
    return clusters


def _of_mean(metric: Metric, clusters: Mapping[str, _Cases]) -> Effect:
    changes: list[list[float]] = []
    means: list[list[float]] = []
    for cases in clusters.values():
        of_cluster = [_changes(metric, case) for case in cases.values()]
        changes += of_cluster
        means.append(list(map(fmean, of_cluster)))
    estimate, variance, degrees = _mean(means)
    unseen = _unseen(metric, changes, len(clusters))
    return Effect(
        metric=metric,
        estimate=estimate,
        error=max(math.sqrt(variance + unseen), LEAST_ERROR),
        degrees=degrees,
        clusters=len(clusters),
        cases=len(changes),
        pairs=sum(map(len, changes)),
        method=f"t at {degrees:.3g} degrees of freedom, errors by cluster (CR2)",
        unseen=unseen,
    )


def _changes(metric: Metric, pairs: Iterable[Pair]) -> list[float]:
    return [metric.change(pair) or 0.0 for pair in pairs]


def _mean(clusters: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Return the mean over all cases, its variance and the degrees of freedom.

    The variance is CR2, and the degrees those of Bell and McCaffrey. For a mean, the matrices of
    the paper reduce to the share p of the cases that a cluster has: the adjustment of a cluster's
    residual is 1 / √(1 − p).
    """
    total = sum(map(len, clusters))
    mean = math.fsum(map(math.fsum, clusters)) / total
    squares: list[float] = []
    crossed: list[float] = []
    parts: list[float] = []
    for cluster in clusters:
        share = len(cluster) / total
        residual = math.fsum(value - mean for value in cluster) / total
        squares.append(residual**2 / (1 - share))
        crossed.append(share**2 / (1 - share))
        parts.append(share**2)
    off_diagonal = math.fsum(crossed) ** 2 - math.fsum(value**2 for value in crossed)
    return mean, math.fsum(squares), 1 / (math.fsum(parts) + off_diagonal)


def _unseen(metric: Metric, cases: Sequence[Sequence[float]], clusters: int) -> float:
    """Return what one more pair adds to the variance.

    Half of this pair is the largest change up, half of it down. Without it, a few pairs that agree
    would prove that no pair ever differs. A. Agresti and Y. Min (2005), Simple improved confidence
    intervals for comparing matched proportions, Statistics in Medicine 24. Where all that changes
    is pass or fail, the largest change is 1, also before the first is seen.
    """
    changes = list(chain.from_iterable(cases))
    largest = max(map(abs, changes))
    if metric.scale == "difference" and {-1.0, 0.0, 1.0}.issuperset(changes):
        largest = 1.0
    trials = sum_of_inverses(map(len, cases))
    return largest**2 * trials / len(cases) ** 3 * clusters / (clusters - 1)


def _of_quantile(metric: Metric, share: float, clusters: Mapping[str, _Cases], seed: int) -> Effect:
    samples = [list(chain.from_iterable(cases.values())) for cases in clusters.values()]
    chance = random.Random(seed)  # noqa: S311  # a lottery, and the same one every time
    drawn = [_log_ratio(chance.choices(samples, k=len(samples)), share) for _ in range(DRAWS)]
    variance = sum_of_squares(drawn) / (DRAWS - 1)
    number, degrees = len(clusters), len(clusters) - 1
    return Effect(
        metric=metric,
        estimate=_log_ratio(samples, share),
        error=max(math.sqrt(variance), LEAST_ERROR),
        degrees=degrees,
        clusters=number,
        cases=sum(map(len, clusters.values())),
        pairs=sum(map(len, samples)),
        method=f"bootstrap of {number} clusters, t at {degrees} degrees of freedom",
    )


def _log_ratio(samples: Iterable[Sequence[Pair]], share: float) -> float:
    pairs = list(chain.from_iterable(samples))
    base = quantile((pair.base for pair in pairs), share)
    head = quantile((pair.head for pair in pairs), share)
    return math.log(head / base)


def quantile(values: Iterable[float], share: float) -> float:
    """Return a quantile, interpolated between the two nearest values."""
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])
