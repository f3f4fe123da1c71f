"""Reports of a workflow link to the lines of its commit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentv_ci.app.run.files import Reports
from agentv_ci.contracts.proof import Proof
from agentv_ci.github.workflow import Workflow, read_workflow
from agentv_ci.report.renderers import ReportFormat
from agentv_ci.report.view import NO_LINKS, Links


def reports_in_workflow(
    files: Mapping[ReportFormat, Path],
    plugins: Mapping[str, Path],
    variables: Mapping[str, str],
    cwd: Path,
    proof: Proof | None = None,
) -> Reports:
    """Return reports that, in a workflow, link to its commit and append to the job summary."""
    workflow = read_workflow(variables)
    # Shared by all steps of a job.
    summary = variables.get("GITHUB_STEP_SUMMARY")
    return Reports(
        files, links_of(workflow), frozenset({cwd / summary} if summary else ()), plugins, proof
    )


def links_of(workflow: Workflow | None) -> Links:
    """Return links to lines at the commit of a workflow; none outside of one."""
    if workflow is None:
        return NO_LINKS
    return Links.of_commit(workflow.server_url, workflow.repository, workflow.shown_commit)
