"""Tools that read documents and ask nothing, such as validate, list_cases and estimate."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agentv_ci.app.documents.compile import CompiledPlan, Selection, compile_paths
from agentv_ci.app.documents.explain import explain
from agentv_ci.app.documents.previews import diff_plans, estimate_run, planned_cases
from agentv_ci.app.documents.validate import check_paths
from agentv_ci.base.text import listed
from agentv_ci.compile.selection import EVERY_CASE, CaseFilter
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.source import relative
from agentv_ci.errors import InvalidInput, NothingToRun
from agentv_ci.mcp_server.answers import Answer
from agentv_ci.mcp_server.repository import Repository
from agentv_ci.report.diagnostics import document
from agentv_ci.workspaces.git_refs import is_url

Name = Annotated[str, Field(max_length=500)]
Names = Annotated[list[Name], Field(max_length=100)]
PathName = Annotated[str, Field(max_length=500, description="A path relative to the repository.")]
Paths = Annotated[
    Names, Field(min_length=1, description="Files, folders or globs, relative to the repository.")
]


class Cases(BaseModel):
    """Which cases are meant; by default all of `evals`."""

    model_config = ConfigDict(extra="forbid")

    paths: Paths = ["evals"]
    target: Name | None = Field(
        None, description="The target that answers every case instead of its own."
    )
    eval_ids: Names = Field([], description="Only cases with one of these ids or globs.")
    tags: Names = Field([], description="Only cases with one of these tags or globs.")
    filter: Name | None = Field(
        None, description="Only cases that meet a condition, such as 'tag:smoke and not tag:slow'."
    )

    @property
    def only(self) -> CaseFilter:
        """The conditions."""
        return CaseFilter(self.eval_ids, self.tags, expression=self.filter)


ALL_CASES = Cases()


class DocumentTools:
    """The tools, each of which answers with JSON; raises CannotGoOn."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def validate(self, paths: Paths = ["evals"], strict: bool = False) -> Answer:  # noqa: B006, FBT002  # a tool's schema
        """Check eval, targets and config files.

        Every mistake has its file, line, column, rule and message.
        """
        root = self._repository.root
        checks = check_paths(self._repository.patterns(paths), targets=None, cwd=root)
        self._repository.require_inside(each.path for each in checks.files)
        if not checks.files:
            raise NothingToRun(f"no eval, targets or config document in {listed(paths)}")
        checked = document(checks.files, checks.skipped, strict=strict)
        diagnostics: list[Answer] = []
        for file, record in zip(checks.files, checked.files, strict=True):
            path = relative(file.path, root)
            for diagnostic in record.diagnostics:
                fields = diagnostic.model_dump(exclude={"path"}, exclude_none=True)
                diagnostics.append({"path": path, **fields})
        return {
            "valid": checked.summary.failed == 0,
            "summary": checked.summary.model_dump(),
            "diagnostics": diagnostics,
        }

    def explain_rule(
        self, rule: Annotated[str, Field(max_length=20, description="An id such as AV304.")]
    ) -> Answer:
        """Explain a rule: what it reports, with a wrong and a right example."""
        return explain(rule.upper()).model_dump()

    def list_cases(self, cases: Cases = ALL_CASES) -> Answer:
        """List the cases that would run: id, file, line, target and trials."""
        return planned_cases(self.compiled(cases).plan).model_dump(exclude_none=True)

    def compile(self, cases: Cases = ALL_CASES, older_plan: PathName | None = None) -> Answer:
        """Compile cases into a plan, and say what it contains.

        With an older plan, which cases changed and why.

        The plan itself is not shown: write one with `agentv-ci compile --out FILE`.
        """
        compiled = self.compiled(cases)
        plan = compiled.plan
        answer: Answer = {
            "digest": plan.digest,
            "cases": len(plan.cases),
            "suites": [suite.path for suite in plan.suites],
            "targets": {key: target.provider for key, target in plan.targets.items()},
            "warnings": [
                f"{warning.path}:{warning.line}: {warning.rule} {warning.message}"
                for warning in compiled.origin.warnings
            ],
        }
        if older_plan is not None:
            diff = diff_plans(compiled, self._repository.file(older_plan), cases.only)
            answer |= diff.model_dump(exclude_none=True)
        return answer

    def estimate(self, cases: Cases = ALL_CASES) -> Answer:
        """Estimate the requests, tokens, cost and time of a run."""
        return estimate_run(self.compiled(cases), workers=None).model_dump()

    def compiled(self, cases: Cases) -> CompiledPlan:
        """Return the plan of cases, all of whose files are in the repository; raises CannotGoOn."""
        patterns = self._repository.patterns(cases.paths)
        targets = (cases.target,) if cases.target is not None else ()
        only = cases.only or EVERY_CASE
        selection = Selection(patterns, target_names=targets, only=only)
        try:
            compiled = compile_paths(selection, cwd=self._repository.root)
        except InvalidInput as error:
            # Messages quote the files that they are about.
            self._repository.require_inside(Path(each.path) for each in error.diagnostics)
            raise
        self._repository.require_inside(
            (*compiled.origin.sources, *self._of_workspaces(compiled.plan))
        )
        return compiled

    def _of_workspaces(self, plan: Plan) -> Iterator[Path]:
        """Yield the local Git repositories of workspaces, and what agents may see beside them."""
        for workspace in filter(None, (case.workspace for case in plan.cases)):
            commit = workspace.commit
            local = (commit.git,) if commit is not None and not is_url(commit.git) else ()
            # As where agents work.
            seen = map(os.path.expanduser, workspace.visible)
            yield from map(self._repository.root.joinpath, (*local, *seen))
