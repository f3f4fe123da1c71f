"""Comment through GitHub's API: REST (issue comments, pull requests) and, for one query, GraphQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import httpx

from agentv_ci import __version__
from agentv_ci.contracts.base import ErrorKind, JsonObject, JsonValue
from agentv_ci.contracts.exchange import Environment, ProviderError
from agentv_ci.json_access import count_at, objects_at, read_json, text_at
from agentv_ci.publish.comment import Comment, NotCommented, NotPermitted
from agentv_ci.publish.workflow import Workflow
from agentv_ci.retry import RetryPolicy, retry_hint_s, with_retries
from agentv_ci.text import on_one_line, shortened

POLICY = RetryPolicy(max_retries=3, initial_delay_s=1.0, max_delay_s=60.0)
REQUEST_TIMEOUT_S = 20.0
TIMEOUT_S = 180.0
PAGE = 100
MAX_PAGES = 100
FORBIDDEN = 403
PERMISSION = " (the job needs `pull-requests: write`, which runs from forks and Dependabot never have)"
NOT_FOUND = 404
UNREACHABLE = (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, OverflowError, ImportError, ExceptionGroup)
"""ImportError: a SOCKS proxy without its package. ValueError: an invalid proxy or token."""
OF_APPS = "ghs_"
"""The prefix of tokens of apps (GitHub Blog, "Behind GitHub's new authentication token formats")."""
MAX_BYTES = 16 * 1024 * 1024
MAX_REDIRECTS = 5
WORKFLOW_BOT = "github-actions"
"""The author of comments that are written with the token of a workflow."""
MAX_MESSAGE = 300


async def comment_on(comment: Comment, workflow: Workflow, token: str, environment: Environment) -> str:
    """Create or update the comment and return its address; raises NotCommented."""

    async def attempt() -> str:
        # A retry starts over: a comment whose response was lost is found instead of written twice.
        async with _client(token) as client:
            api = _Api(client, workflow.api_url, token, environment.now)
            number = workflow.pull_request if workflow.pull_request is not None else await _find(api, workflow)
            return await _upsert(api, comment, workflow, number)

    try:
        address, _ = await with_retries(
            attempt,
            POLICY,
            lambda *_: None,
            uniform=environment.uniform,
            pause=lambda _, wait_s: environment.sleep(wait_s),
            timeout_s=TIMEOUT_S,
        )
    except ProviderError as error:
        refusal = NotPermitted if error.kind == "auth" else NotCommented
        raise refusal(error.detail) from error
    except UNREACHABLE as error:
        raise NotCommented(f"cannot reach GitHub: {type(error).__name__}") from error
    return address


async def _upsert(api: _Api, comment: Comment, workflow: Workflow, number: int) -> str:
    comments = f"/repos/{workflow.repository}/issues/{number}/comments"
    author = await _author(api, workflow)
    own = await _own_comments(api, comments, comment, author)
    if not own:
        posted = await api.ask("POST", comments, {"body": comment.text(None)})
        address = _address(posted)
        # Another run may have posted at the same time: all runs agree that the first one stays. The answer has the
        # true author, which may not have been known before.
        own = await _own_comments(api, comments, comment, text_at(posted, "user", "login") or author)
        if not own or count_at(own[0], "id") == count_at(posted, "id"):
            return address
    first, *others = own
    for each in others:
        with _may_be_gone():
            await api.ask("DELETE", _path(workflow, each))
    body = text_at(first, "body") or ""
    if comment.is_older_than(body):
        raise NotCommented("a later run has already commented")
    with _may_be_gone():
        return _address(await api.ask("PATCH", _path(workflow, first), {"body": comment.text(body)}))
    return _address(await api.ask("POST", comments, {"body": comment.text(None)}))


async def _own_comments(api: _Api, path: str, comment: Comment, author: str) -> list[JsonObject]:
    """Return the comments that this one replaces, the oldest first; there is normally one at most."""
    found = [each async for each in api.pages(path) if (text_at(each, "body") or "").startswith(comment.marker)]
    return [each for each in found if text_at(each, "user", "login") == author]


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


async def _find(api: _Api, workflow: Workflow) -> int:
    """Return the open pull request of a `workflow_run` event, by the head that GitHub reports, not by any file."""
    head = workflow.head
    if head is None:
        raise NotCommented("this run does not belong to a pull request")
    if head.owner is not None and head.branch is not None:
        query = {"state": "open", "head": f"{head.owner}:{head.branch}"}
        async for each in api.pages(f"/repos/{workflow.repository}/pulls", query):
            number = count_at(each, "number")
            if text_at(each, "head", "sha") == head.sha and number is not None:
                return number
    raise NotCommented(f"no open pull request has commit {head.sha[:7]} as its head")


async def _author(api: _Api, workflow: Workflow) -> str:
    """Return the login that REST shows for comments of this token; only GraphQL knows that of an app's token."""
    try:
        answer = await api.ask("POST", workflow.graphql_url, {"query": "{viewer{login}}"})
        found = text_at(answer, "data", "viewer", "login")
    except ProviderError:
        # A proxy or a server without GraphQL; REST knows the owners of personal tokens.
        found = None if api.token.startswith(OF_APPS) else await _user(api)
    login = (found or WORKFLOW_BOT).removesuffix("[bot]")
    # REST appends `[bot]` to the logins of apps; people cannot have such a login.
    is_app = api.token.startswith(OF_APPS) or login == WORKFLOW_BOT
    return f"{login}[bot]" if is_app else login


async def _user(api: _Api) -> str | None:
    try:
        return text_at(await api.ask("GET", "/user"), "login")
    except ProviderError as error:
        if error.retryable:
            raise
        return None


def _address(comment: JsonValue) -> str:
    """Return the address of a comment just written; raises ProviderError if the response is not a comment."""
    if count_at(comment, "id") is None:
        # Another page, such as a login, is not a success.
        raise ProviderError("malformed", "the response is not from GitHub's API", retryable=True)
    return text_at(comment, "html_url") or ""


def _client(token: str) -> httpx.AsyncClient:
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {token}",
        "User-Agent": f"agentv-ci/{__version__}",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return httpx.AsyncClient(
        headers=headers, timeout=REQUEST_TIMEOUT_S, follow_redirects=True, max_redirects=MAX_REDIRECTS
    )


@dataclass(frozen=True, slots=True)
class _Api:
    """A client of the API that raises ProviderError for refused requests."""

    client: httpx.AsyncClient
    url: str
    token: str
    now: Callable[[], datetime]

    async def ask(
        self, method: str, path: str, body: JsonObject | None = None, query: Mapping[str, str] | None = None
    ) -> JsonValue:
        """Return the response to a request; `path` is a REST path or a whole address."""
        address = path if "://" in path else f"{self.url}{path}"
        try:
            async with self.client.stream(method, address, json=body, params=query) as response:
                answer = await _answer(response)
        except UNREACHABLE as error:
            # The error's text may contain the header with the token.
            raise ProviderError("network", f"cannot reach GitHub: {type(error).__name__}", retryable=True) from None
        if response.is_success:
            return answer
        raise self._refused(response, answer)

    async def pages(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[JsonObject]:
        """Yield the items of all pages of a list."""
        for page in range(1, MAX_PAGES + 1):
            asked = {**(query or {}), "per_page": str(PAGE), "page": str(page)}
            answer = await self.ask("GET", path, query=asked)
            if not isinstance(answer, list):
                raise ProviderError("malformed", "the response is not from GitHub's API", retryable=True)
            found = objects_at(answer)
            for each in found:
                yield each
            if len(found) < PAGE:
                return

    def _refused(self, response: httpx.Response, answer: JsonValue) -> ProviderError:
        message = shortened(on_one_line(text_at(answer, "message") or response.reason_phrase), MAX_MESSAGE)
        detail = f"GitHub returned {response.status_code}: {message}"
        kind: ErrorKind = "request"
        if response.status_code == FORBIDDEN and "integration" in message:
            detail += PERMISSION
            kind = "auth"
        hint = retry_hint_s(response.headers, self.now())
        # Too many requests are refused with 403, too, but with a hint.
        is_passing = response.status_code >= 500 or response.status_code in (408, 409, 429) or hint is not None
        # The policy does not retry a 403.
        status = None if is_passing else response.status_code
        return ProviderError(kind, detail, status=status, retryable=is_passing, retry_after_s=hint)


async def _answer(response: httpx.Response) -> JsonValue:
    """Return the JSON of a body; None if it is invalid, or larger than anything that GitHub sends."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > MAX_BYTES:
            return None
        pieces.append(piece)
    try:
        return read_json(b"".join(pieces).decode("utf-8", "replace"))
    except ValueError:
        return None
