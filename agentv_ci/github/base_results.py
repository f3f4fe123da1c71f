"""Find the results of the base branch: an artifact of the newest run of the same workflow there.

GitHub Docs, "REST API endpoints for workflow runs" and "… for GitHub Actions artifacts".
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from msgspec import Struct

from agentv_ci.base.json_access import count_at, objects_at, text_at, value_at
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Environment
from agentv_ci.github.api import Api, with_api
from agentv_ci.github.refusals import NotPublished
from agentv_ci.github.workflow import Workflow

PERMISSION = "actions: read"
MAX_RUNS = 5
OF_THE_BRANCH = frozenset({"push", "schedule", "workflow_dispatch", "merge_group"})
"""Events whose runs are about the branch itself; others may have checked out anything."""
MAX_BYTES = 64 * 1024 * 1024


class BaseResults(Struct, frozen=True):
    """An artifact of a run on the base branch."""

    name: str
    """Such as `main (1f2e3d4)`."""
    archive: bytes
    """A zip file."""


async def fetch_base_results(
    artifact: str, workflow: Workflow, token: str, environment: Environment
) -> BaseResults:
    """Return the newest artifact with this name on the base branch; raises NotPublished."""
    if not workflow.base_branches or not workflow.file:
        raise NotPublished("the base branch or the file of the workflow is unknown")

    async def work(api: Api) -> BaseResults:
        actions = f"/repos/{workflow.repository}/actions"
        async for run in _runs(api, actions, workflow):
            answer = await api.ask(
                "GET", f"{actions}/runs/{count_at(run, 'id')}/artifacts", query={"name": artifact}
            )
            for stored in objects_at(answer, "artifacts"):
                size = count_at(stored, "size_in_bytes")
                if value_at(stored, "expired") is False and size is not None and size <= MAX_BYTES:
                    archive = await api.download(
                        f"{actions}/artifacts/{count_at(stored, 'id')}/zip", MAX_BYTES
                    )
                    sha = text_at(run, "head_sha") or ""
                    return BaseResults(f"{workflow.base_branches[0]} ({sha[:7]})", archive)
        raise NotPublished(f"no run of {workflow.base_branches[0]} has an artifact '{artifact}'")

    return await with_api(work, workflow, token, PERMISSION, environment)


async def _runs(api: Api, actions: str, workflow: Workflow) -> AsyncIterator[JsonObject]:
    """Yield the newest runs on the base branch.

    Runs of pull requests from branches with the same name are not among them.
    """
    query = {"branch": workflow.base_branches[0], "status": "completed", "per_page": "30"}
    answer = await api.ask("GET", f"{actions}/workflows/{workflow.file}/runs", query=query)
    trusted = [
        run
        for run in objects_at(answer, "workflow_runs")
        if text_at(run, "event") in OF_THE_BRANCH
        and text_at(run, "head_repository", "full_name") == workflow.repository
    ]
    for run in trusted[:MAX_RUNS]:
        yield run
