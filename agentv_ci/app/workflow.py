"""The workflow of GitHub Actions that a command runs in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentv_ci.errors import UsageError
from agentv_ci.json_access import read_json
from agentv_ci.report.links import NO_LINKS, Links

if TYPE_CHECKING:
    from agentv_ci.contracts.base import JsonValue
    from agentv_ci.publish.context import Workflow


def read_workflow(environ: Mapping[str, str]) -> Workflow | None:
    """Return the workflow that the environment and the event's payload tell of; None outside of GitHub Actions."""
    if environ.get("GITHUB_ACTIONS") != "true":
        return None
    from agentv_ci.publish.context import workflow_of

    return workflow_of(environ, _event(environ.get("GITHUB_EVENT_PATH")))


def _event(path: str | None) -> JsonValue:
    try:
        return read_json(Path(path).read_text("utf-8")) if path else None
    except (OSError, ValueError):
        return None


def links_of(workflow: Workflow | None) -> Links:
    """Return the addresses of lines at the commit that people look at; elsewhere none."""
    if workflow is None:
        return NO_LINKS
    return Links.of_commit(workflow.server_url, workflow.repository, workflow.shown_commit)


async def refuse_fork_code(workflow: Workflow | None, roots: Sequence[Path], environ: Mapping[str, str]) -> None:
    """Raise UsageError where what is checked out must not be run with what this job has in reach."""
    if workflow is None:
        return
    from agentv_ci.publish.checkout import HINT, refusal

    reason = await refusal(workflow, roots, environ)
    if reason is not None:
        raise UsageError(reason, hint=HINT)
