"""How alike the trials of one run are: what more trials of a run cannot average out.

The intraclass correlation of trials by run, from the analysis of variance of each case: J. L.
Fleiss and J. Cuzick (1979), The reliability of dichotomous judgments: unequal numbers of judges per
subject, Applied Psychological Measurement 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from agentv_ci.analysis.health.histories import MIN_RUNS, CaseHistory
from agentv_ci.contracts.results import PRECISION

LEAST_TRIALS = 2
LEAST_RUNS = 200
"""Of all cases together, in which trials could differ."""


def trial_correlation(cases: Sequence[CaseHistory]) -> float | None:
    """Return the correlation of trials of the same case and run, from 0.

    None if too few runs could show it.
    """
    between = within = weight = 0.0
    runs = degrees_within = degrees_between = 0
    for case in cases:
        lines = [run.case for run in case.graded if run.case.graded >= LEAST_TRIALS]
        trials = sum(line.graded for line in lines)
        passed = sum(line.passed for line in lines)
        if len(lines) < MIN_RUNS or passed in (0, trials):
            continue
        rate = passed / trials
        runs += len(lines)
        between += math.fsum(
            line.graded * (line.passed / line.graded - rate) ** 2 for line in lines
        )
        within += math.fsum(line.passed * (1 - line.passed / line.graded) for line in lines)
        degrees_between += len(lines) - 1
        degrees_within += trials - len(lines)
        weight += trials - sum(line.graded**2 for line in lines) / trials
    if runs < LEAST_RUNS:
        return None
    mean_between, mean_within = between / degrees_between, within / degrees_within
    spread = mean_between + (weight / degrees_between - 1) * mean_within
    if not spread:
        return None
    return round(max(0.0, (mean_between - mean_within) / spread), PRECISION)
