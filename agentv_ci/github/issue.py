"""Health report → the issue about shifts on GitHub."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from agentv_ci.base.left_files import read_named
from agentv_ci.base.model_errors import sentence
from agentv_ci.contracts.command_output import HealthReport
from agentv_ci.contracts.exchange import Environment
from agentv_ci.errors import UsageError
from agentv_ci.github.refusals import NotPublished
from agentv_ci.github.shift_issue import KeptIssue, keep_issue
from agentv_ci.github.workflow import Workflow
from agentv_ci.report.shifts import issue_text, shift_id, shifts_in


async def report_shifts(path: Path, workflow: Workflow, environment: Environment) -> KeptIssue:
    """Keep the issue of a workflow as a health report says.

    Raises UsageError for a file that is not such a report, NotPublished if GitHub refuses.
    """
    report = _report(path)
    token = environment.variables.get("GITHUB_TOKEN")
    if not token:
        raise NotPublished("GITHUB_TOKEN is not set; pass it to this step in `env:`")
    text = issue_text(report, f"{workflow.server_url}/{workflow.repository}", workflow.run_url)
    return await keep_issue(text, {*map(shift_id, shifts_in(report))}, workflow, token, environment)


def _report(path: Path) -> HealthReport:
    hint = "write one with `agentv-ci history health --format json`"
    try:
        return HealthReport.model_validate_json(read_named(path))
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}", hint=hint) from error
    except ValidationError as error:
        raise UsageError(
            f"'{path}' is not a health report: {sentence(error)}", hint=hint
        ) from error
