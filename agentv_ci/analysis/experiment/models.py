"""Which models answered in an experiment, and whether they are those that were planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentv_ci.analysis.experiment.plan import ExperimentPlan
from agentv_ci.analysis.experiment.trials import ExperimentTrials
from agentv_ci.base.text import listed


def unplanned_models(plan: ExperimentPlan, trials: ExperimentTrials) -> Iterator[str]:
    """Yield which arms were answered by other models than planned, or by several."""
    by_target: dict[tuple[str, str], dict[str, None]] = {}
    for arm in trials.by_arm:
        for trial in trials.of_arm(arm):
            if trial.model is not None:
                by_target.setdefault((arm, trial.target), {})[trial.model] = None
    for (arm, target), models in sorted(by_target.items()):
        planned = plan.models.get((arm, target))
        answered = f"target '{target}' of arm '{arm}' was answered by"
        if len(models) > 1:
            yield f"{answered} several models: {listed(sorted(models))}"
        elif planned is not None and planned not in (model := next(iter(models))):
            yield f"{answered} {model}, not by {planned}"
    yield from _between_arms(by_target)


def _between_arms(by_target: Mapping[tuple[str, str], Mapping[str, None]]) -> Iterator[str]:
    """Yield the targets that several arms share, and that other models answered in some of them."""
    shared: dict[str, dict[str, str]] = {}
    for (arm, target), models in sorted(by_target.items()):
        if len(models) == 1:
            shared.setdefault(target, {})[arm] = next(iter(models))
    for target, by_arm in shared.items():
        if len({*by_arm.values()}) > 1:
            pairs = ", ".join(f"{model} in '{arm}'" for arm, model in by_arm.items())
            yield f"target '{target}' was answered by different models: {pairs}"
