"""A client of GitHub's REST API, and of its GraphQL API for one query."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime
from typing import TypeVar

import httpx
from msgspec import Struct

from agentv_ci.base.json_access import count_at, objects_at, read_json, text_at
from agentv_ci.base.proxies import ThroughProxies
from agentv_ci.base.retry import RetryPolicy, retry_hint_s, with_retries
from agentv_ci.base.text import on_one_line, shortened
from agentv_ci.contracts.base import ErrorKind, JsonObject, JsonValue
from agentv_ci.contracts.exchange import Environment, ProviderError
from agentv_ci.github.refusals import NotPermitted, NotPublished
from agentv_ci.github.workflow import Workflow
from agentv_ci.version import __version__

T = TypeVar("T")

POLICY = RetryPolicy(max_retries=3, initial_delay_s=1.0, max_delay_s=60.0)
REQUEST_TIMEOUT_S = 20.0
TIMEOUT_S = 180.0
PAGE = 100
MAX_PAGES = 100
FORBIDDEN = 403
NOT_FOUND = 404
UNREACHABLE = (
    httpx.HTTPError,
    httpx.InvalidURL,
    OSError,
    ValueError,
    OverflowError,
    ImportError,
    ExceptionGroup,
)
"""ImportError: a SOCKS proxy without its package. ValueError: an invalid proxy or token."""
MAX_BYTES = 16 * 1024 * 1024
MAX_REDIRECTS = 5
JSON = "application/vnd.github+json"
RAW = "application/vnd.github.raw+json"
"""Asks for the content of a file instead of its description."""
MAX_MESSAGE = 300


async def with_api(
    work: Callable[[Api], Awaitable[T]],
    workflow: Workflow,
    token: str,
    permission: str,
    environment: Environment,
) -> T:
    """Return what `work` returns, which starts over after a temporary failure; raises NotPublished.

    `permission` is what the token needs, such as `checks: write`.
    """

    async def attempt() -> T:
        async with _client(token) as client:
            return await work(Api(client, workflow.api_url, token, permission, environment.now))

    try:
        result, _ = await with_retries(
            attempt,
            POLICY,
            lambda *_: None,
            uniform=environment.uniform,
            pause=lambda _, wait_s: environment.sleep(wait_s),
            timeout_s=TIMEOUT_S,
        )
    except ProviderError as error:
        refusal = NotPermitted if error.kind == "auth" else NotPublished
        raise refusal(error.detail) from error
    except UNREACHABLE as error:
        raise NotPublished(f"cannot reach GitHub: {type(error).__name__}") from error
    return result


def address_of(answer: JsonValue) -> str:
    """Return the web address of what was just written.

    Raises ProviderError if the response is something else.
    """
    if count_at(answer, "id") is None:
        # Another page, such as a login, is not a success.
        raise ProviderError("malformed", "the response is not from GitHub's API", retryable=True)
    return text_at(answer, "html_url") or ""


def _client(token: str) -> httpx.AsyncClient:
    headers = {
        "Authorization": f"Bearer {token}",
        "User-Agent": f"agentv-ci/{__version__}",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return httpx.AsyncClient(
        headers=headers,
        transport=ThroughProxies(),
        timeout=REQUEST_TIMEOUT_S,
        follow_redirects=True,
        max_redirects=MAX_REDIRECTS,
    )


class Api(Struct, frozen=True):
    """A client of the API that raises ProviderError for refused requests."""

    client: httpx.AsyncClient
    url: str
    token: str
    permission: str
    now: Callable[[], datetime]

    async def ask(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        query: Mapping[str, str] | None = None,
    ) -> JsonValue:
        """Return the response to a request; `path` is a REST path or a whole address."""
        return _json(await self._content(method, path, body, query, MAX_BYTES))

    async def download(
        self, path: str, limit: int, query: Mapping[str, str] | None = None, *, accept: str = JSON
    ) -> bytes:
        """Return a file of at most `limit` bytes; empty if it is larger."""
        return await self._content("GET", path, None, query, limit, accept)

    async def pages(
        self, path: str, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[JsonObject]:
        """Yield the items of all pages of a list."""
        for page in range(1, MAX_PAGES + 1):
            asked = {**(query or {}), "per_page": str(PAGE), "page": str(page)}
            answer = await self.ask("GET", path, query=asked)
            if not isinstance(answer, list):
                raise ProviderError(
                    "malformed", "the response is not from GitHub's API", retryable=True
                )
            found = objects_at(answer)
            for each in found:
                yield each
            if len(found) < PAGE:
                return

    async def _content(
        self,
        method: str,
        path: str,
        body: JsonObject | None,
        query: Mapping[str, str] | None,
        limit: int,
        accept: str = JSON,
    ) -> bytes:
        address = path if "://" in path else f"{self.url}{path}"
        headers = {"Accept": accept}
        try:
            async with self.client.stream(
                method, address, json=body, params=query, headers=headers
            ) as response:
                content = await _read(response, limit)
        except UNREACHABLE as error:
            # The error's text may contain the header with the token.
            raise ProviderError(
                "network", f"cannot reach GitHub: {type(error).__name__}", retryable=True
            ) from None
        if response.is_success:
            return content
        raise self._refused(response, _json(content))

    def _refused(self, response: httpx.Response, answer: JsonValue) -> ProviderError:
        message = shortened(
            on_one_line(text_at(answer, "message") or response.reason_phrase), MAX_MESSAGE
        )
        detail = f"GitHub returned {response.status_code}: {message}"
        kind: ErrorKind = "request"
        if response.status_code == FORBIDDEN and "integration" in message:
            needed = f"the job needs `{self.permission}`"
            detail += f" ({needed}, which runs from forks and Dependabot never have)"
            kind = "auth"
        hint = retry_hint_s(response.headers, self.now())
        # Too many requests are refused with 403, too, but with a hint.
        is_passing = (
            response.status_code >= 500
            or response.status_code in (408, 409, 429)
            or hint is not None
        )
        # The policy does not retry a 403.
        status = None if is_passing else response.status_code
        return ProviderError(kind, detail, status=status, retryable=is_passing, retry_after_s=hint)


async def _read(response: httpx.Response, limit: int) -> bytes:
    """Return a body; empty if it is longer than `limit`."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > limit:
            return b""
        pieces.append(piece)
    return b"".join(pieces)


def _json(content: bytes) -> JsonValue:
    """Return the JSON in a body, None if it is invalid."""
    try:
        return read_json(content.decode("utf-8", "replace"))
    except ValueError:
        return None
