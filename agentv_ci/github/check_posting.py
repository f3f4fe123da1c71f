"""Create the check run through GitHub's API (GitHub Docs, "REST API endpoints for check runs")."""

from __future__ import annotations

from agentv_ci.base.json_access import count_at
from agentv_ci.contracts.exchange import Environment, ProviderError
from agentv_ci.github.api import Api, address_of, with_api
from agentv_ci.github.check import Check
from agentv_ci.github.workflow import Workflow

PERMISSION = "checks: write"


async def create_check(
    check: Check, workflow: Workflow, token: str, environment: Environment
) -> str:
    """Create a check run on the commit of the workflow and return its address.

    Raises NotPublished.
    """
    path = f"/repos/{workflow.repository}/check-runs"

    async def work(api: Api) -> str:
        # A retry creates another one: of several with the same name, GitHub shows the newest.
        created = await api.ask("POST", path, check.creation(workflow.shown_commit))
        address, own = address_of(created), f"{path}/{count_at(created, 'id')}"
        try:
            for each in check.updates():
                await api.ask("PATCH", own, each)
        except ProviderError:
            # An open check run would block the pull request.
            await api.ask("PATCH", own, check.ending())
            raise
        return address

    return await with_api(work, workflow, token, PERMISSION, environment)
