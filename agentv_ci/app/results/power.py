"""Experiment or earlier results → how many trials show which change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from agentv_ci.analysis.experiment.plan import experiment_plan
from agentv_ci.analysis.experiment.planning import Design
from agentv_ci.analysis.experiment.power import (
    ASSUMED_PREFERENCES,
    ASSUMED_SCORES,
    Plan,
    power_table,
    spread_of,
)
from agentv_ci.analysis.experiment.trials import ExperimentTrials
from agentv_ci.analysis.statistics.effects import Metric
from agentv_ci.app.documents.previews import estimate_run
from agentv_ci.app.run.experiment import CompiledExperiment
from agentv_ci.compile.overrides import Overrides, override
from agentv_ci.contracts.command_output import PowerTable
from agentv_ci.contracts.experiment import DETECT
from agentv_ci.errors import NothingToRun
from agentv_ci.results.files import read_rows

ALPHA, POWER, ARMS = 0.05, 0.8, 2
"""Of a comparison of two runs without an experiment."""


def power_of_experiment(
    experiment: CompiledExperiment, results: Sequence[Path], *, workers: int | None
) -> PowerTable:
    """Return what an experiment can find, with the variance of earlier results, if there are any.

    Raises UsageError for results that cannot be read.
    """
    document, compiled = experiment.document, experiment.compiled
    planned = experiment_plan(document, experiment.name, compiled.plan)
    metric = planned.metrics[0]
    once = estimate_run(
        replace(compiled, plan=override(compiled.plan, Overrides(repeat=1))), workers=workers
    )
    plan = Plan(
        metric=metric,
        design=Design(
            alpha=document.alpha / (len(planned.metrics) * len(planned.heads)),
            power=document.power,
            cases=len({case.cluster for case in planned.cases}),
            looks=document.stop is not None,
        ),
        cases=len(planned.cases),
        arms=len(document.arms),
        detect=(document.detect or {}).get(metric.name, DETECT),
        planned=max((case.trials for case in planned.cases), default=None),
        cost_usd=once.cost_usd,
        seconds=once.seconds,
    )
    trials = _read(results, metric, document.cluster_by)
    spread, basis = spread_of(metric, trials, document.base_name)
    if basis == ASSUMED_SCORES and metric.name in document.preferences:
        basis = ASSUMED_PREFERENCES
    return power_table(plan, spread, basis)


def power_of_results(results: Sequence[Path]) -> PowerTable:
    """Return what a comparison of two runs like earlier ones can find.

    Raises UsageError for results that cannot be read, NothingToRun for empty ones.
    """
    metric = Metric("score")
    trials = _read(results, metric, "case")
    cases = set(chain.from_iterable(trials.by_arm.values()))
    if not cases:
        raise NothingToRun("no row of the results has a verdict")
    plan = Plan(metric, Design(ALPHA, POWER, len(cases)), len(cases), ARMS, DETECT)
    return power_table(plan, *spread_of(metric, trials, None))


def _read(results: Sequence[Path], metric: Metric, cluster_by: str) -> ExperimentTrials:
    trials = ExperimentTrials(cluster_by, [metric])
    for path in results:
        for row in read_rows(path, allow_torn=True):
            trials.add(row)
    return trials
