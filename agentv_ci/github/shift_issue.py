"""The one open issue about shifts: opened when one is found, closed when it is over.

One that a person closed is not opened again for the same shifts. The issue names them in a
comment at its end, which it loses when it is over.

GitHub Docs, "REST API endpoints for issues".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from agentv_ci.base.json_access import count_at, text_at
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Environment
from agentv_ci.github.api import Api, address_of, with_api
from agentv_ci.github.comment_posting import author_of
from agentv_ci.github.workflow import Workflow

PERMISSION = "issues: write"
LABEL = "agentv-ci"
SHIFTS = "<!-- agentv-ci:found "
TITLE = "Evaluations have shifted"


class KeptIssue(Struct, frozen=True):
    """What became of the issue."""

    did: Literal["opened", "updated", "closed", "nothing"]
    url: str = ""


async def keep_issue(
    text: str, shifts: Collection[str], workflow: Workflow, token: str, environment: Environment
) -> KeptIssue:
    """Open the issue of a workflow or bring it up to date; close it if there is no shift.

    Raises NotPublished.

    `shifts` are ids of the shifts: hexadecimal digits.
    """
    marker = f"<!-- agentv-ci:shifts {quote(workflow.name, safe=' ').replace('--', '-%2D')} -->"
    is_over = not shifts
    body = f"{marker}\n{text}"
    if not is_over:
        body += f"{SHIFTS}{' '.join(sorted(shifts))} -->\n"
    path = f"/repos/{workflow.repository}/issues"

    async def work(api: Api) -> KeptIssue:
        own = await _own_issues(api, path, marker, workflow, "open")
        if not own:
            if is_over or _are_dismissed(
                shifts, await _own_issues(api, path, marker, workflow, "closed")
            ):
                return KeptIssue("nothing")
            created: JsonObject = {"title": TITLE, "body": body, "labels": [LABEL]}
            return KeptIssue("opened", address_of(await api.ask("POST", path, created)))
        first, *others = own
        closed: JsonObject = {"state": "closed", "state_reason": "completed"}
        for each in others:  # two runs at the same time may both have opened one
            await api.ask(
                "PATCH", _path(path, each), {"body": f"{marker}\nThere are two.\n", **closed}
            )
        changed: JsonObject = {"body": body}
        if is_over:
            changed = {**changed, **closed}
        url = address_of(await api.ask("PATCH", _path(path, first), changed))
        return KeptIssue("closed" if is_over else "updated", url)

    return await with_api(work, workflow, token, PERMISSION, environment)


def _path(issues: str, issue: JsonObject) -> str:
    return f"{issues}/{count_at(issue, 'number')}"


def _are_dismissed(shifts: Collection[str], closed: Sequence[JsonObject]) -> bool:
    """Whether a person closed an issue about these shifts, or more."""
    for issue in closed:
        named = (text_at(issue, "body") or "").rpartition(SHIFTS)[2].split()
        if set(shifts) <= set(named):
            return True
    return False


async def _own_issues(
    api: Api, path: str, marker: str, workflow: Workflow, state: Literal["open", "closed"]
) -> list[JsonObject]:
    """Return the issues with the marker that this token's owner has written, the oldest first."""
    query = {"state": state, "labels": LABEL, "direction": "asc"}
    marked = [
        issue
        async for issue in api.pages(path, query)
        if (text_at(issue, "body") or "").startswith(marker)
    ]
    if not marked:
        return []
    author = await author_of(api, workflow)
    return [issue for issue in marked if text_at(issue, "user", "login") == author]
