"""Part of a plan: some of its cases, with everything they need and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from agentv_ci.compile.document import sealed
from agentv_ci.contracts.plan import FileText, Plan, PlanCase, files_of, named_targets


def is_selected(case_id: str, eval_ids: Sequence[str]) -> bool:
    """Whether a case is meant: by its id itself, by a glob, or because none are given."""
    return not eval_ids or any(case_id == each or fnmatchcase(case_id, each) for each in eval_ids)


def narrowed(plan: Plan, keep: Callable[[PlanCase], bool]) -> Plan:
    """Return the plan of those cases alone: the same that compiling with them alone gives."""
    needs = Needs()
    cases = tuple(case for case in plan.cases if keep(case))
    for case in cases:
        needs.add(case)
    return sealed(needs.of(plan).model_copy(update={"cases": cases}))


class Needs:
    """What some cases need of a plan."""

    def __init__(self) -> None:
        self._suites: set[str] = set()
        self._targets: set[str] = set()
        self._files: dict[str, str] = {}
        """SHA-256 → path; of files that say the same, the first path in order."""

    def add(self, case: PlanCase) -> None:
        """Take in what a case needs."""
        self._suites.add(case.suite)
        self._targets.update(named_targets(case))
        for file in files_of(case):
            self._files[file.sha256] = min(file.path, self._files.get(file.sha256, file.path))

    def of(self, plan: Plan) -> Plan:
        """Return a plan with these suites, targets and files, in the order in which plans have them."""
        files = sorted((path, sha256) for sha256, path in self._files.items())
        return plan.model_copy(
            update={
                "suites": tuple(suite for suite in plan.suites if suite.path in self._suites),
                "targets": {key: plan.targets[key] for key in sorted(self._targets)},
                "files": {sha256: FileText(path=path, text=plan.files[sha256].text) for path, sha256 in files},
            }
        )
