"""Write the comment through GitHub's API (GitHub Docs, "REST API endpoints for issue comments")."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agentv_ci.base.json_access import count_at, text_at
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Environment, ProviderError
from agentv_ci.github.api import NOT_FOUND, Api, address_of, with_api
from agentv_ci.github.comment import Comment
from agentv_ci.github.refusals import NotPublished
from agentv_ci.github.workflow import Workflow

PERMISSION = "pull-requests: write"
OF_APPS = "ghs_"
"""The prefix of tokens of apps (GitHub Blog, "Behind GitHub's new authentication token formats").
"""
WORKFLOW_BOT = "github-actions"
"""The author of comments that are written with the token of a workflow."""


async def comment_on(
    comment: Comment, workflow: Workflow, token: str, environment: Environment
) -> str:
    """Create or update the comment and return its address; raises NotPublished."""

    async def work(api: Api) -> str:
        # A retry starts over: a comment whose response was lost is found instead of written twice.
        number = workflow.pull_request
        if number is None:
            number = await _find(api, workflow)
        return await _upsert(api, comment, workflow, number)

    return await with_api(work, workflow, token, PERMISSION, environment)


async def _upsert(api: Api, comment: Comment, workflow: Workflow, number: int) -> str:
    comments = f"/repos/{workflow.repository}/issues/{number}/comments"
    author = await author_of(api, workflow)
    own = await _own_comments(api, comments, comment, author)
    if not own:
        posted = await api.ask("POST", comments, {"body": comment.text(None)})
        address = address_of(posted)
        # Another run may have posted at the same time: all runs agree that the first one stays. The
        # answer has the true author, which may not have been known before.
        own = await _own_comments(
            api, comments, comment, text_at(posted, "user", "login") or author
        )
        if not own or count_at(own[0], "id") == count_at(posted, "id"):
            return address
    first, *others = own
    for each in others:
        with _may_be_gone():
            await api.ask("DELETE", _path(workflow, each))
    body = text_at(first, "body") or ""
    if comment.is_older_than(body):
        raise NotPublished("a later run has already commented")
    with _may_be_gone():
        return address_of(
            await api.ask("PATCH", _path(workflow, first), {"body": comment.text(body)})
        )
    return address_of(await api.ask("POST", comments, {"body": comment.text(None)}))


async def _own_comments(api: Api, path: str, comment: Comment, author: str) -> list[JsonObject]:
    """Return the comments that this one replaces, the oldest first.

    There is normally one at most.
    """
    own: list[JsonObject] = []
    async for posted in api.pages(path):
        is_marked = (text_at(posted, "body") or "").startswith(comment.marker)
        if is_marked and text_at(posted, "user", "login") == author:
            own.append(posted)
    return own


def _path(workflow: Workflow, comment: JsonObject) -> str:
    return f"/repos/{workflow.repository}/issues/comments/{count_at(comment, 'id')}"


@contextmanager
def _may_be_gone() -> Iterator[None]:
    """Ignore that a comment has been deleted in the meantime."""
    try:
        yield
    except ProviderError as error:
        if error.status != NOT_FOUND:
            raise


async def _find(api: Api, workflow: Workflow) -> int:
    """Return the open pull request of a `workflow_run` event.

    It is found by the head that GitHub reports, not by any file.
    """
    head = workflow.head
    if head is None:
        raise NotPublished("this run does not belong to a pull request")
    if head.owner is not None and head.branch is not None:
        query = {"state": "open", "head": f"{head.owner}:{head.branch}"}
        async for each in api.pages(f"/repos/{workflow.repository}/pulls", query):
            number = count_at(each, "number")
            if text_at(each, "head", "sha") == head.sha and number is not None:
                return number
    raise NotPublished(f"no open pull request has commit {head.sha[:7]} as its head")


async def author_of(api: Api, workflow: Workflow) -> str:
    """Return the login that REST shows for writers with this token.

    Only GraphQL knows that of an app's token.
    """
    try:
        answer = await api.ask("POST", workflow.graphql_url, {"query": "{viewer{login}}"})
        found = text_at(answer, "data", "viewer", "login")
    except ProviderError:
        # A proxy or a server without GraphQL; REST knows the owners of personal tokens.
        found = await _user(api) if not api.token.startswith(OF_APPS) else None
    login = (found or WORKFLOW_BOT).removesuffix("[bot]")
    if api.token.startswith(OF_APPS) or login == WORKFLOW_BOT:
        # REST appends `[bot]` to the logins of apps; people cannot have such a login.
        return f"{login}[bot]"
    return login


async def _user(api: Api) -> str | None:
    try:
        return text_at(await api.ask("GET", "/user"), "login")
    except ProviderError as error:
        if error.retryable:
            raise
        return None
