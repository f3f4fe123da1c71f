"""Whether the pass rate and the mean score of two runs differ by more than chance."""

from __future__ import annotations

import math
from collections.abc import Sequence

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


def pass_rate_change(passes: Sequence[tuple[bool, bool]]) -> Figure | None:
    """Return the change of the pass rate, from (before, now) of each case; None without cases."""
    if not passes:
        return None
    worse, better = passes.count((True, False)), passes.count((False, True))
    passed_before = sum(before for before, _ in passes)
    passed_now = sum(now for _, now in passes)
    loss = smallest_loss(better, passed_before, ALPHA)
    detectable = None
    if loss is not None:
        detectable = round((loss - better) / len(passes), PRECISION)
    p_value = mcnemar(worse, better)
    return Figure(
        base=round(passed_before / len(passes), PRECISION),
        head=round(passed_now / len(passes), PRECISION),
        p_value=p_value,
        falls=worse > better and p_value <= ALPHA,
        detectable=detectable,
    )


def mean_score_change(scores: Sequence[tuple[float, float]]) -> Figure | None:
    """Return the change of the mean score, from (before, now) of each case; None without cases."""
    if not scores:
        return None
    differences = [round(now - before, PRECISION) for before, now in scores]
    before = math.fsum(before for before, _ in scores) / len(scores)
    now = math.fsum(now for _, now in scores) / len(scores)
    p_value, points_down = wilcoxon(differences)
    drop = None
    # With fewer differences, no pattern of signs is significant.
    if 2 * 0.5 ** sum(difference != 0 for difference in differences) <= ALPHA:
        drop = detectable_mean_drop(differences, 1 - ALPHA, POWER)
    return Figure(
        base=round(before, PRECISION),
        head=round(now, PRECISION),
        p_value=p_value,
        falls=points_down and p_value <= ALPHA,
        # Without spread among the differences, the estimate is 0.
        detectable=drop if drop and drop <= before else None,
    )
