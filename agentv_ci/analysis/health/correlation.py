"""How alike the trials of one run are: what more trials of a run cannot average out.

The intraclass correlation of trials by run, from the analysis of variance of each case: J. L.
Fleiss and J. Cuzick (1979), The reliability of dichotomous judgments: unequal numbers of judges per
subject, Applied Psychological Measurement 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from agentv_ci.analysis.health.histories import (
    MIN_RUNS,
    CaseHistory,
    CaseRun,
    pass_rate,
    trials_of,
)
from agentv_ci.contracts.results import PRECISION

LEAST_TRIALS = 2
LEAST_RUNS = 200
"""Of all cases together, in which trials could differ."""


def trial_correlation(cases: Sequence[CaseHistory]) -> float | None:
    """Return the correlation of trials of the same case and run, from 0.

    None if too few runs could show it.
    """
    between = within = weight = 0.0
    number = degrees_within = degrees_between = 0
    for runs, passed, trials in _mixed(cases):
        rate = passed / trials
        number += len(runs)
        between += math.fsum(run.case.graded * (pass_rate(run) - rate) ** 2 for run in runs)
        within += math.fsum(run.case.passed * (1 - pass_rate(run)) for run in runs)
        degrees_between += len(runs) - 1
        degrees_within += trials - len(runs)
        weight += trials - sum(run.case.graded**2 for run in runs) / trials
    if number < LEAST_RUNS:
        return None
    mean_between, mean_within = between / degrees_between, within / degrees_within
    spread = mean_between + (weight / degrees_between - 1) * mean_within
    return round(max(0.0, (mean_between - mean_within) / spread), PRECISION) if spread else None


def _mixed(cases: Iterable[CaseHistory]) -> Iterator[tuple[Sequence[CaseRun], int, int]]:
    """Yield the runs of each case whose trials differ, and how many of how many passed."""
    for case in cases:
        runs = [run for run in case.graded if run.case.graded >= LEAST_TRIALS]
        passed, trials = trials_of(runs)
        if len(runs) >= MIN_RUNS and passed not in (0, trials):
            yield runs, passed, trials
