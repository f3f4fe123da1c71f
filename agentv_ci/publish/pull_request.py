"""Comments through GitHub's API: REST (issue comments, pull requests) and, for one question, GraphQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

import httpx

from agentv_ci import __version__
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.outside import count_at, flowed, objects_at, read_json, shortened, text_at
from agentv_ci.publish.comment import Comment, NotCommented
from agentv_ci.publish.context import Access, Workflow
from agentv_ci.retry import RetryPolicy, retry_hint_s, with_retries

POLICY = RetryPolicy(max_retries=3, initial_delay_s=1.0, max_delay_s=30.0)
REQUEST_TIMEOUT_S = 20.0
TIMEOUT_S = 120.0
PAGE = 100
MAX_PAGES = 100
WORKFLOW_BOT = "github-actions"
"""Who writes with the token of a workflow."""
MAX_MESSAGE = 300


async def comment_on(comment: Comment, workflow: Workflow, access: Access) -> str:
    """Create or update the comment, and return its address; raises NotCommented."""

    async def attempt() -> str:
        # All of it again after a failure: a comment whose answer got lost is found, and not written twice.
        async with _client(workflow, access) as api:
            number = workflow.pull_request if workflow.pull_request is not None else await _find(api, workflow)
            return await _upsert(api, comment, workflow, number)

    async def pause(_: ProviderError, seconds: float) -> None:
        await access.sleep(seconds)

    try:
        url, _ = await with_retries(
            attempt, POLICY, lambda *_: None, uniform=access.uniform, pause=pause, timeout_s=TIMEOUT_S
        )
    except ProviderError as error:
        raise NotCommented(error.detail) from error
    return url


async def _upsert(api: _Api, comment: Comment, workflow: Workflow, number: int) -> str:
    comments = f"/repos/{workflow.repository}/issues/{number}/comments"
    author = await _login(api, workflow)
    async for each in api.pages(comments):
        body = text_at(each, "body") or ""
        if body.startswith(comment.marker) and _plain(text_at(each, "user", "login")) == author:
            if comment.is_older_than(body):
                raise NotCommented("a later run has commented already")
            path = f"/repos/{workflow.repository}/issues/comments/{count_at(each, 'id')}"
            return _address(await api.ask("PATCH", path, {"body": comment.text(body)}))
    return _address(await api.ask("POST", comments, {"body": comment.text(None)}))


async def _find(api: _Api, workflow: Workflow) -> int:
    """Return the open pull request of a `workflow_run` event: by its head, which only GitHub says, not by any file."""
    head = workflow.head
    if head is None:
        raise NotCommented("this run is of no pull request")
    if head.owner is not None and head.branch is not None:
        query = {"state": "open", "head": f"{head.owner}:{head.branch}"}
        async for each in api.pages(f"/repos/{workflow.repository}/pulls", query):
            number = count_at(each, "number")
            if text_at(each, "head", "sha") == head.sha and number is not None:
                return number
    raise NotCommented(f"no open pull request has commit {head.sha[:7]} as its head any more")


async def _login(api: _Api, workflow: Workflow) -> str:
    """Return who writes with this token. REST does not tell it of a workflow's own token, and GraphQL does."""
    try:
        told = await api.ask("POST", workflow.graphql_url, {"query": "{viewer{login}}"})
    except ProviderError:
        return WORKFLOW_BOT
    return _plain(text_at(told, "data", "viewer", "login")) or WORKFLOW_BOT


def _plain(login: str | None) -> str:
    """A login as GraphQL tells it: REST puts `[bot]` behind those of apps."""
    return (login or "").removesuffix("[bot]")


def _address(comment: JsonValue) -> str:
    return text_at(comment, "html_url") or ""


@asynccontextmanager
async def _client(workflow: Workflow, access: Access) -> AsyncIterator[_Api]:
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {access.token}",
        "User-Agent": f"agentv-ci/{__version__}",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    try:
        client = httpx.AsyncClient(headers=headers, timeout=REQUEST_TIMEOUT_S, follow_redirects=True)
    except (ValueError, ImportError, OSError) as error:
        # A proxy or a certificate of the environment that cannot be used.
        raise NotCommented(f"{type(error).__name__}: {error}") from error
    async with client:
        yield _Api(client, workflow.api_url, access.now)


@dataclass(frozen=True, slots=True)
class _Api:
    """Asks, and says as ProviderError what GitHub refuses."""

    client: httpx.AsyncClient
    url: str
    now: Callable[[], datetime]

    async def ask(
        self, method: str, path: str, body: JsonObject | None = None, query: Mapping[str, str] | None = None
    ) -> JsonValue:
        """Return the answer of a request; `path` is one of REST, or a whole address."""
        address = path if "://" in path else f"{self.url}{path}"
        try:
            response = await self.client.request(method, address, json=body, params=query)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, ValueError) as error:
            # Its text may repeat the header that could not be sent.
            raise ProviderError("network", f"GitHub was not reached: {type(error).__name__}", retryable=True) from None
        try:
            answer = read_json(response.text)
        except ValueError:
            answer = None
        if response.is_success:
            return answer
        raise self._refused(response, answer)

    async def pages(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[JsonObject]:
        """Yield the items of all pages of a list."""
        for page in range(1, MAX_PAGES + 1):
            asked = {**(query or {}), "per_page": str(PAGE), "page": str(page)}
            found = objects_at({"items": await self.ask("GET", path, query=asked)}, "items")
            for each in found:
                yield each
            if len(found) < PAGE:
                return

    def _refused(self, response: httpx.Response, answer: JsonValue) -> ProviderError:
        said = shortened(flowed(text_at(answer, "message") or response.reason_phrase), MAX_MESSAGE)
        detail = f"GitHub answers {response.status_code}: {said}"
        hint = retry_hint_s(response.headers, self.now())
        # Too many requests are refused with 403, too; then there is a hint.
        passing = response.status_code >= 500 or response.status_code in (408, 409, 429) or hint is not None
        # The policy repeats what has no status by this flag alone.
        return ProviderError("server", detail, retryable=passing, retry_after_s=hint)
