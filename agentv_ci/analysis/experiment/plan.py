"""What the plan of an experiment says about its comparison.

It has the cases in their order, and what differs in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from agentv_ci.analysis.experiment.trials import CaseName, cluster_of, metrics_of
from agentv_ci.analysis.statistics.effects import Metric
from agentv_ci.base.text import counted, listed, shortened
from agentv_ci.contracts.api_targets import AzureOpenAITarget, HttpTarget
from agentv_ci.contracts.experiment import ExperimentDocument
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.targets import Target, model_name

MAX_NAMED = 3
MAX_NAME = 80
LATEST = "latest"


class ComparedCase(Struct, frozen=True):
    """A case of all arms."""

    name: CaseName
    cluster: str
    trials: int
    """Of each arm."""
    digests: Mapping[str, str]
    """By arm."""


class ExperimentPlan(Struct, frozen=True):
    """An experiment that is compiled."""

    document: ExperimentDocument
    name: str
    """Its file, relative to the repository."""
    digest: str
    cases: Sequence[ComparedCase]
    """In the order in which they run."""
    models: Mapping[tuple[str, str], str | None]
    """Arm and target → the model that is asked for, if it is known."""
    differences: Sequence[str]
    """Why the arms cannot be compared, if anything but the arms differs."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics, the primary one first."""
        return metrics_of(self.document)

    @property
    def heads(self) -> Sequence[str]:
        """The arms that are compared with the base."""
        return [arm.name for arm in self.document.arms if arm.name != self.document.base_name]

    @property
    def trials(self) -> int:
        """The trials of all arms."""
        return sum(case.trials for case in self.cases) * len(self.document.arms)


def experiment_plan(document: ExperimentDocument, name: str, plan: Plan) -> ExperimentPlan:
    """Return what a plan says about the comparison of its arms; skipped cases are not compared."""
    by_case: dict[CaseName, list[PlanCase]] = {}
    models: dict[tuple[str, str], str | None] = {}
    for case in plan.cases:
        if case.skip is None:
            by_case.setdefault((case.suite, case.id), []).append(case)
            target = plan.targets[case.target]
            models[case.arm or "", target.name] = _model(target)
    compared = [_compared(key, cases, document.cluster_by) for key, cases in by_case.items()]
    differences = [*_differing(by_case, plan)]
    return ExperimentPlan(document, name, plan.digest, compared, models, differences)


def _compared(key: CaseName, cases: Sequence[PlanCase], cluster_by: str) -> ComparedCase:
    """Return the case that these cases of all arms are."""
    first = cases[0]
    return ComparedCase(
        name=key,
        cluster=cluster_of(cluster_by, key, first.tags or (), first.metadata),
        trials=first.trials,
        digests={case.arm or "": case.digest for case in cases},
    )


def _model(target: Target) -> str | None:
    """Return the model that must answer.

    None if it is not known: a deployment, an agent and an alias have others.
    """
    if not isinstance(target, HttpTarget) or isinstance(target, AzureOpenAITarget):
        return None
    model = model_name(target)
    if model is None or LATEST in model:
        return None
    return model


def _differing(cases: Mapping[CaseName, Sequence[PlanCase]], plan: Plan) -> Iterator[str]:
    """Yield what else than the arms differs: how answers are scored, and what is expected."""
    for what, scoring in (("judges or evaluators", _scoring), ("expectations", _expectations)):
        names: list[str] = []
        for (_, name), of_case in cases.items():
            scored = [scoring(case, plan) for case in of_case]
            if scored.count(scored[0]) < len(scored):
                names.append(shortened(name, MAX_NAME))
        if names:
            more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
            where = f"{listed(names[:MAX_NAMED])}{more}"
            yield f"the {what} differ between the arms in {counted(len(names), 'case')}: {where}"


def _scoring(case: PlanCase, plan: Plan) -> object:
    evaluators = [evaluator.model_dump(mode="json") for evaluator in case.evaluators]
    judges = map(plan.targets.__getitem__, case.judges)
    settings = [
        judge.model_dump(mode="json", exclude={"name"}, exclude_none=True) for judge in judges
    ]
    return [evaluators, settings]


def _expectations(case: PlanCase, _: Plan) -> object:
    fields = {
        "expected_messages",
        "expected_outcome",
        "reference_answer",
        "threshold",
        "trials",
        "seeds",
    }
    return case.model_dump(mode="json", include=fields)
