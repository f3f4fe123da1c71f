"""Infer pass rates from few trials, and whether a change is more than chance.

Sources: E. B. Wilson (1927), Probable inference, JASA 22, for the interval of a rate; R. G.
Newcombe (1998), Improved confidence intervals for the difference between binomial proportions based
on paired data, Statistics in Medicine 17, method 10, and Interval estimation for the difference
between independent proportions, ibid., method 10; Q. McNemar (1947), Psychometrika 12, in its exact
form; F. Wilcoxon (1945), Biometrics Bulletin 1; M. Chen et al. (2021), Evaluating large language
models trained on code, for pass@k; S. Yao et al. (2024), τ-bench, for pass^k.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from operator import truediv
from statistics import NormalDist, fmean

from agentv_ci.analysis.statistics.exact_tests import Trials
from agentv_ci.contracts.results import PRECISION

NEGLIGIBLE = 1e-18
EXACT_UP_TO = 60
"""Most differences for which Wilcoxon's exact distribution is used; with more, it is close to
normal.
"""


def quantile(confidence: float) -> float:
    """Return how many standard deviations around the mean cover this share.

    The distribution is normal.
    """
    return NormalDist().inv_cdf((1 + confidence) / 2)


def rate_interval(passed: float, trials: float, confidence: float) -> tuple[float, float]:
    """Return the interval of a pass rate (Wilson); 0 to 1 without trials."""
    if not trials:
        return 0.0, 1.0
    z = quantile(confidence)
    rate, weight = passed / trials, z * z / trials
    middle = (rate + weight / 2) / (1 + weight)
    half: float = z * math.sqrt(rate * (1 - rate) / trials + weight / (4 * trials)) / (1 + weight)
    # At the ends rounding must not move what is exactly 0 or 1.
    low = 0.0 if passed == 0 else max(0.0, middle - half)
    high = 1.0 if passed == trials else min(1.0, middle + half)
    return round(low, PRECISION), round(high, PRECISION)


def change_interval(
    base: Sequence[bool], head: Sequence[bool], confidence: float, *, paired: bool
) -> tuple[float, float]:
    """Return the interval of the change of a rate, head − base (Newcombe).

    It is from trials on both sides. `paired`: the n-th trials of both sides belong together, so
    that variation they share does not widen the interval.
    """
    low_0, high_0 = rate_interval(sum(base), len(base), confidence)
    low_1, high_1 = rate_interval(sum(head), len(head), confidence)
    rate_0, rate_1 = sum(base) / len(base), sum(head) / len(head)
    phi = _correlation(base, head) if paired else 0.0

    def distance(one: float, other: float) -> float:
        return math.sqrt(max(0.0, one * one - 2 * phi * one * other + other * other))

    change = rate_1 - rate_0
    low = change - distance(rate_1 - low_1, high_0 - rate_0)
    high = change + distance(high_1 - rate_1, rate_0 - low_0)
    return round(max(-1.0, low), PRECISION), round(min(1.0, high), PRECISION)


def mean_rate_change_interval(cases: Sequence[Trials], confidence: float) -> tuple[float, float]:
    """Return the interval of the change of the mean rate of these cases (Newcombe).

    It is within what can change. Each case weighs the same. Cases that differ only make the
    interval wider than needed.
    """
    base_passed, base, head_passed, head = zip(*cases, strict=True)
    passed_0, trials_0 = _mean_rate(base_passed, base)
    passed_1, trials_1 = _mean_rate(head_passed, head)
    rate_0, rate_1 = passed_0 / trials_0, passed_1 / trials_1
    low_0, high_0 = rate_interval(passed_0, trials_0, confidence)
    low_1, high_1 = rate_interval(passed_1, trials_1, confidence)
    low = rate_1 - rate_0 - math.hypot(rate_1 - low_1, high_0 - rate_0)
    high = rate_1 - rate_0 + math.hypot(high_1 - rate_1, rate_0 - low_0)
    return round(max(-rate_0, low), PRECISION), round(min(1 - rate_0, high), PRECISION)


def _mean_rate(passed: Sequence[int], numbers: Sequence[int]) -> tuple[float, float]:
    """Return the passes and trials of one case with the mean rate of these.

    Its rate is as precise as that mean. Of each case, it is given the passes and the number of
    trials.
    """
    cases = len(numbers)
    trials = cases**2 / sum_of_inverses(numbers)
    return trials * math.fsum(map(truediv, passed, numbers)) / cases, trials


def sum_of_inverses(numbers: Iterable[int]) -> float:
    """Return Σ 1/n: of numbers of trials, what the variance of a mean of rates grows with."""
    return math.fsum(1 / number for number in numbers)


def sum_of_squares(values: Sequence[float]) -> float:
    """Return the sum of the squared differences from the mean."""
    mean = fmean(values)
    return math.fsum((value - mean) ** 2 for value in values)


def _correlation(base: Sequence[bool], head: Sequence[bool]) -> float:
    """Return Newcombe's estimate of the correlation of pairs, with its continuity correction."""
    pairs = list(zip(base, head, strict=True))
    both, neither = pairs.count((True, True)), pairs.count((False, False))
    first, second = pairs.count((True, False)), pairs.count((False, True))
    margins = (both + first) * (second + neither) * (both + second) * (first + neither)
    if not margins:
        return 0.0
    excess = float(both * neither - first * second)
    if excess > 0:
        excess = max(excess - len(pairs) / 2, 0.0)
    return float(excess / math.sqrt(margins))


def mcnemar(worse: int, better: int) -> float:
    """Return the exact two-sided p-value of cases that became worse and better."""
    changed, fewer = worse + better, min(worse, better)
    # The largest term of the binomial tail; the others are shares of it.
    largest = math.lgamma(changed + 1) - math.lgamma(fewer + 1) - math.lgamma(changed - fewer + 1)
    shares, share = 0.0, 1.0
    for number in range(fewer, -1, -1):
        shares += share
        share *= number / (changed - number + 1)
        if share < NEGLIGIBLE:
            break
    return min(1.0, round(2 * shares * math.exp(largest - changed * math.log(2)), PRECISION))


def smallest_loss(better: int, most: int, alpha: float) -> int | None:
    """Return how many cases must become worse, while `better` improve, for p ≤ alpha.

    None: more than `most`.
    """
    return first_of(range(better + 1, most + 1), lambda worse: mcnemar(worse, better) <= alpha)


def first_of(candidates: Sequence[int], is_enough: Callable[[int], bool]) -> int | None:
    """Return the first number that is enough, if all larger ones are, too; None without one."""
    index = bisect_left(candidates, True, key=is_enough)
    return candidates[index] if index < len(candidates) else None


def wilcoxon(differences: Sequence[float]) -> tuple[float, bool]:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, and whether the ranks fall.

    The mean may rise though they fall: one large rise among many small drops. Differences of zero
    are ignored. The p-value is exact, also with ties, up to EXACT_UP_TO differences. With more, it
    is the normal approximation with a correction for ties.
    """
    changed = list(filter(None, differences))
    if not changed:
        return 1.0, False
    ranks = _doubled_ranks(list(map(abs, changed)))
    up = sum(rank for rank, difference in zip(ranks, changed, strict=True) if difference > 0)
    least = min(up, sum(ranks) - up)
    tail = _exact_tail if len(ranks) <= EXACT_UP_TO else _normal_tail
    return min(1.0, round(2 * tail(ranks, least), PRECISION)), 2 * up < sum(ranks)


def _doubled_ranks(sizes: Sequence[float]) -> list[int]:
    """Return twice the rank of each value; doubled, the mean rank of equal values is an integer."""
    ordered = sorted(sizes)
    return [bisect_left(ordered, size) + 1 + bisect_right(ordered, size) for size in sizes]


def _exact_tail(ranks: Sequence[int], least: int) -> float:
    """Return the share of all sign patterns whose positive ranks sum to at most `least`."""
    ways = [1] + [0] * least
    for rank in ranks:
        for total in range(least, rank - 1, -1):
            ways[total] += ways[total - rank]
    return float(sum(ways) / 2 ** len(ranks))


def _normal_tail(ranks: Sequence[int], least: int) -> float:
    mean = sum(ranks) / 2
    # The sum of doubled ranks r has the variance Σr²/4, also with ties.
    deviation = math.sqrt(sum(rank * rank for rank in ranks)) / 2
    # The continuity correction is half a rank: 1 in doubled ranks.
    return NormalDist().cdf((least + 1 - mean) / deviation)


def detectable_mean_drop(
    differences: Sequence[float], confidence: float, power: float
) -> float | None:
    """Return the smallest drop of the mean that a sample detects with this power.

    The sample has the spread of these differences.
    """
    if len(differences) < 2:
        return None
    variance = sum_of_squares(differences) / (len(differences) - 1)
    factor = quantile(confidence) + NormalDist().inv_cdf(power)
    return round(factor * math.sqrt(variance / len(differences)), PRECISION)


def pass_at(k: int, passed: int, trials: int) -> float:
    """Return the chance that at least one of k trials drawn from those that ran passes (pass@k)."""
    return round(1 - math.comb(trials - passed, k) / math.comb(trials, k), PRECISION)


def pass_hat(k: int, passed: int, trials: int) -> float:
    """Return the chance that all of k trials drawn from those that ran pass (pass^k)."""
    return round(math.comb(passed, k) / math.comb(trials, k), PRECISION)
