"""What httpx knows about requests; its door. It loads slowly, so only what needs it imports this module."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx

from agentv_ci.execute.apis.wire import (
    CONNECT_TIMEOUT_S,
    USER_AGENT,
    WRITE_TIMEOUT_S,
    Answer,
    DecodingError,
    require_bounds,
    unpacked,
    unreachable,
)

UNREACHABLE = (httpx.HTTPError, httpx.InvalidURL, DecodingError, ImportError, ValueError, OverflowError, ExceptionGroup)
"""ImportError: a SOCKS proxy without its package. ValueError, OverflowError: an address or a proxy that is none."""


class Through:
    """See Wire: through proxies of the environment, and to addresses that are no plain text."""

    def __init__(self, base_url: str, context: ssl.SSLContext | None, *, trusts_environment: bool) -> None:
        self._base_url = base_url
        # Without a context nobody is trusted: plain HTTP needs no trust, and loading it is slow.
        self._context = context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._trusts_environment = trusts_environment
        self._idle: list[httpx.AsyncClient] = []

    async def post(self, path: str, *, headers: Mapping[str, str], content: bytes, timeout_s: float) -> Answer:
        """Return the answer; raises ProviderError when there is none."""
        limits = httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S, write=WRITE_TIMEOUT_S)
        try:
            async with self._client() as client:
                url = self._base_url + path
                async with client.stream("POST", url, content=content, headers=headers, timeout=limits) as response:
                    body = await _whole(response)
                    return Answer(response.status_code, response.headers, unpacked(body, response.headers))
        except UNREACHABLE as error:
            raise unreachable(error, self._base_url) from error

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx.AsyncClient]:
        if self._idle:
            client = self._idle.pop()
        else:
            client = httpx.AsyncClient(
                verify=self._context,
                trust_env=self._trusts_environment,
                limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
                headers={"accept-encoding": "gzip, deflate", "user-agent": USER_AGENT},
            )
        try:
            yield client
        finally:
            # A cookie would go to whichever question comes next.
            client.cookies.clear()
            self._idle.append(client)

    async def close(self) -> None:
        """Close all connections."""
        while self._idle:
            await self._idle.pop().aclose()


async def _whole(response: httpx.Response) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_raw():
        size += len(piece)
        require_bounds(size)
        pieces.append(piece)
    return b"".join(pieces)


def trust() -> ssl.SSLContext:
    """Return whom HTTPS trusts: what SSL_CERT_FILE or SSL_CERT_DIR names, else certifi's list; raises OSError."""
    return httpx.create_ssl_context(trust_env=True)


async def get_status(url: str, *, timeout_s: float, trusts_environment: bool) -> int:
    """Return the status of a GET; raises ProviderError when there is none."""
    try:
        async with httpx.AsyncClient(trust_env=trusts_environment, timeout=timeout_s) as client:
            return (await client.get(url)).status_code
    except UNREACHABLE as error:
        raise unreachable(error, url) from error
