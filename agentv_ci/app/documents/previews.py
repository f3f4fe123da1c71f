"""Plan → what a run of it would ask, what that costs, and how the plan differs from another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agentv_ci.app.documents.compile import CompiledPlan, read_plan
from agentv_ci.compile.diff import diff
from agentv_ci.compile.estimate import estimate
from agentv_ci.compile.selection import CaseFilter, facts_of
from agentv_ci.contracts.command_output import Estimate, PlanDiff, PlannedCase, PlannedCases
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.errors import UsageError


def diff_plans(compiled: CompiledPlan, old: Path, only: CaseFilter) -> PlanDiff:
    """Return how the selected cases differ from an older plan; raises what `read_plan` raises."""
    known = read_plan(old)
    exact = only.preferring({case.id for case in known.cases})
    selected = tuple(case for case in known.cases if exact.selects(facts_of(case)))
    return diff(known.model_copy(update={"cases": selected}), compiled.plan)


def estimate_run(compiled: CompiledPlan, *, workers: int | None) -> Estimate:
    """Return what a run will ask and cost.

    `workers` is the number of concurrent cases; None: as set by the targets. Raises UsageError if
    the numbers overflow.
    """
    try:
        return estimate(compiled.plan, workers=workers)
    except OverflowError as error:
        raise UsageError("the run is too large to estimate") from error


def planned_cases(
    plan: Plan, left: Callable[[PlanCase], int] = lambda case: case.trials
) -> PlannedCases:
    """Return what a run of a plan would ask.

    `left` returns how many trials of a case are not finished.
    """
    cases: list[PlannedCase] = []
    for case in plan.cases:
        trials = left(case) if case.skip is None else 0
        if not trials and case.skip is None:
            continue
        planned = PlannedCase(
            id=case.id,
            suite=case.suite,
            path=case.source.path,
            line=case.source.line,
            target=plan.key_of(case)[2],
            trials=trials,
            skip=case.skip,
        )
        cases.append(planned)
    return PlannedCases(cases=tuple(cases))
