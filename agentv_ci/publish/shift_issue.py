"""The one open issue about shifts: opened when one is found, kept up to date, closed when it is over.

GitHub Docs, "REST API endpoints for issues".
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Environment
from agentv_ci.json_access import count_at, text_at
from agentv_ci.publish.api import Api, address_of, with_api
from agentv_ci.publish.comment_posting import author_of
from agentv_ci.publish.workflow import Workflow

PERMISSION = "issues: write"
LABEL = "agentv-ci"
TITLE = "Evaluations have shifted"


class KeptIssue(Struct, frozen=True):
    """What became of the issue."""

    did: Literal["opened", "updated", "closed", "nothing"]
    url: str = ""


async def keep_issue(
    text: str, workflow: Workflow, token: str, environment: Environment, *, is_over: bool
) -> KeptIssue:
    """Open the issue of a workflow or bring it up to date; close it if the shift is over. Raises NotPublished."""
    marker = f"<!-- agentv-ci:shifts {quote(workflow.name, safe=' ').replace('--', '-%2D')} -->"
    body = f"{marker}\n{text}"
    path = f"/repos/{workflow.repository}/issues"

    async def work(api: Api) -> KeptIssue:
        own = await _own_issues(api, path, marker, workflow)
        if not own:
            if is_over:
                return KeptIssue("nothing")
            created: JsonObject = {"title": TITLE, "body": body, "labels": [LABEL]}
            return KeptIssue("opened", address_of(await api.ask("POST", path, created)))
        first, *others = own
        closed: JsonObject = {"state": "closed", "state_reason": "completed"}
        for each in others:  # two runs at the same time may both have opened one
            await api.ask("PATCH", _path(path, each), closed)
        changed = {"body": body, **(closed if is_over else {})}
        url = address_of(await api.ask("PATCH", _path(path, first), changed))
        return KeptIssue("closed" if is_over else "updated", url)

    return await with_api(work, workflow, token, PERMISSION, environment)


def _path(issues: str, issue: JsonObject) -> str:
    return f"{issues}/{count_at(issue, 'number')}"


async def _own_issues(api: Api, path: str, marker: str, workflow: Workflow) -> list[JsonObject]:
    """Return the open issues with the marker that this token's owner has written, the oldest first."""
    query = {"state": "open", "labels": LABEL, "direction": "asc"}
    found = [each async for each in api.pages(path, query) if (text_at(each, "body") or "").startswith(marker)]
    if not found:
        return []
    author = await author_of(api, workflow)
    return [each for each in found if text_at(each, "user", "login") == author]
