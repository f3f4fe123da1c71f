"""Part of a plan: some of its cases, with everything they need and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from agentv_ci.compile.document import sealed
from agentv_ci.contracts.plan import Plan, PlanCase, files_of, targets_of


def is_selected(case_id: str, eval_ids: Sequence[str]) -> bool:
    """Whether a case is meant: by its id itself, by a glob, or because none are given."""
    return not eval_ids or any(case_id == each or fnmatchcase(case_id, each) for each in eval_ids)


def narrowed(plan: Plan, keep: Callable[[PlanCase], bool]) -> Plan:
    """Return the plan of those cases alone: suites, targets and files that only others need are not in it."""
    cases = tuple(case for case in plan.cases if keep(case))
    if len(cases) == len(plan.cases):
        return plan
    suites = {case.suite for case in cases}
    targets = {key for case in cases for key in targets_of(case)}
    files = {sha256 for case in cases for sha256 in files_of(case)}
    return sealed(
        plan.model_copy(
            update={
                "suites": tuple(suite for suite in plan.suites if suite.path in suites),
                "targets": {key: target for key, target in plan.targets.items() if key in targets},
                "files": {sha256: text for sha256, text in plan.files.items() if sha256 in files},
                "cases": cases,
            }
        )
    )
