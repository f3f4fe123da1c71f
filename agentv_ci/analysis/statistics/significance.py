"""Whether the pass rate and the mean score of two runs differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from agentv_ci.analysis.statistics.inference import (
    detectable_mean_drop,
    mcnemar,
    smallest_loss,
    wilcoxon,
)
from agentv_ci.contracts.comparison import Figure
from agentv_ci.contracts.results import PRECISION

ALPHA = 0.05
"""Of the tests over all cases, two-sided."""
POWER = 0.8
"""Of the smallest detectable drop of the mean."""


def pass_rate_change(before: Sequence[bool], now: Sequence[bool]) -> Figure | None:
    """Return the change of the pass rate, from whether each case passed; None without cases."""
    if not before:
        return None
    passes = list(zip(before, now, strict=True))
    worse, better = passes.count((True, False)), passes.count((False, True))
    loss = smallest_loss(better, sum(before), ALPHA)
    detectable = None
    if loss is not None:
        detectable = round((loss - better) / len(passes), PRECISION)
    p_value = mcnemar(worse, better)
    return Figure(
        base=round(sum(before) / len(passes), PRECISION),
        head=round(sum(now) / len(passes), PRECISION),
        p_value=p_value,
        falls=worse > better and p_value <= ALPHA,
        detectable=detectable,
    )


def mean_score_change(before: Sequence[float], now: Sequence[float]) -> Figure | None:
    """Return the change of the mean score, from the score of each case; None without cases."""
    if not before:
        return None
    differences = [round(new - old, PRECISION) for old, new in zip(before, now, strict=True)]
    mean_before = fmean(before)
    p_value, points_down = wilcoxon(differences)
    drop = None
    # With fewer differences, no pattern of signs is significant.
    if 2 * 0.5 ** (len(differences) - differences.count(0)) <= ALPHA:
        drop = detectable_mean_drop(differences, 1 - ALPHA, POWER)
    return Figure(
        base=round(mean_before, PRECISION),
        head=round(fmean(now), PRECISION),
        p_value=p_value,
        falls=points_down and p_value <= ALPHA,
        # Without spread among the differences, the estimate is 0.
        detectable=drop if drop and drop <= mean_before else None,
    )
