"""What an experiment can find: from the trials of earlier results, or from stated assumptions."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

from agentv_ci.analysis.experiment.planning import (
    Design,
    Spread,
    detectable,
    spread_of_pairs,
    spread_of_pass_rate,
    spread_of_trials,
    trials_needed,
)
from agentv_ci.analysis.experiment.trials import CaseName, ExperimentTrials
from agentv_ci.analysis.statistics.effects import Metric
from agentv_ci.contracts.command_output import PlannedTrials, PowerTable

NUMBERS = (1, 2, 3, 5, 10, 20)
"""Trials per case that the table shows, besides those that are planned and needed."""
ASSUMED_RATE = 0.5
ASSUMED_VARIATION = 0.3
ASSUMED_SCORES = "assumed: each case passes half of its trials, and half of the cases change"
ASSUMED_PREFERENCES = "assumed: half of the pairs have a winner, and half of the cases change"
"""The variance is that of pass or fail."""
ASSUMED_RATIOS = (
    "assumed: values of a case vary by 30% from trial to trial, and half of the cases change"
)


class Plan(Struct, frozen=True):
    """What is asked of an experiment."""

    metric: Metric
    design: Design
    cases: int
    arms: int
    detect: float
    planned: int | None = None
    """Trials of each case."""
    cost_usd: float | None = None
    """Of one trial of each case in each arm."""
    seconds: float | None = None


def spread_of(metric: Metric, trials: ExperimentTrials, base: str | None) -> tuple[Spread, str]:
    """Return how a metric varies, and what that is taken from.

    `base` is the base of an earlier experiment.
    """
    heads = [arm for arm in trials.by_arm if arm != base] if base in trials.by_arm else []
    for head in heads:
        cases = {case: max(of_case) for case, of_case in trials.by_arm[head].items()}
        spread = spread_of_pairs(metric, trials.pairs(metric.name, base or "", head, cases))
        if spread is not None and spread.largest:
            return spread, f"the earlier experiment, '{base}' and '{head}'"
    # Without any variance, nothing is known of it: trials that all agree may be luck.
    if (spread := spread_of_trials(_values(metric, trials))) is not None and spread.within:
        return spread, "earlier trials of the same cases; half of the cases are taken to change"
    if metric.scale == "ratio":
        return Spread(within=2 * ASSUMED_VARIATION**2), ASSUMED_RATIOS
    return spread_of_pass_rate(ASSUMED_RATE), ASSUMED_SCORES


def _values(metric: Metric, trials: ExperimentTrials) -> Iterable[tuple[str, float]]:
    """Yield the case and value of each trial; of ratios, the logarithm."""
    for arm, cases in trials.by_arm.items():
        for case, of_case in cases.items():
            for trial in of_case.values():
                value = trial.values.get(metric.name)
                if value is None:
                    continue
                if metric.scale == "difference":
                    yield _name(arm, case), value
                elif value > 0:
                    yield _name(arm, case), math.log(value)


def _name(arm: str, case: CaseName) -> str:
    return "/".join((arm, *case))


def power_table(plan: Plan, spread: Spread, basis: str) -> PowerTable:
    """Return the table of a plan."""
    needed = trials_needed(spread, plan.design, plan.metric.scaled(plan.detect))
    shown = {*NUMBERS, *filter(None, (needed, plan.planned))}
    return PowerTable(
        metric=plan.metric.name,
        is_share=plan.metric.scale == "ratio",
        alpha=plan.design.alpha,
        power=plan.design.power,
        cases=plan.design.cases,
        arms=plan.arms,
        stops_early=plan.design.looks,
        basis=basis,
        detect=plan.detect,
        needed=needed,
        planned=plan.planned,
        rows=tuple(_row(plan, spread, trials) for trials in sorted(shown)),
    )


def _row(plan: Plan, spread: Spread, trials: int) -> PlannedTrials:
    change = detectable(spread, plan.design, trials)
    if change is not None and plan.metric.scale != "difference":
        change = math.expm1(change)
    return PlannedTrials(
        trials_per_case=trials,
        trials=trials * plan.cases * plan.arms,
        detectable=change,
        cost_usd=plan.cost_usd * trials if plan.cost_usd is not None else None,
        seconds=plan.seconds * trials if plan.seconds is not None else None,
    )
