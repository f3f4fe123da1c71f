"""Requests through httpx; its door. It loads slowly, so this module is imported only when it is needed."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

import httpx

from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.execute.apis.wire import (
    ACCEPTED_PACKINGS,
    CONNECT_TIMEOUT_S,
    USER_AGENT,
    Answer,
    is_loopback,
    network_error,
    require_bounds,
    unpacked,
    unsendable_header,
    without_login,
)

UNREACHABLE = (httpx.HTTPError, httpx.InvalidURL, ImportError, ValueError, OverflowError, ExceptionGroup)
"""ImportError: a SOCKS proxy without its package. ValueError, OverflowError: an invalid address or proxy."""


class ThroughHttpx:
    """See Wire: through proxies of the environment, and to addresses that need normalisation."""

    def __init__(self, base_url: str, context: ssl.SSLContext | None) -> None:
        self._base_url = base_url
        # An empty context for plain HTTP: loading certificates is slow.
        self._context = context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._idle: list[httpx.AsyncClient] = []

    async def post(self, path: str, *, headers: Mapping[str, str], content: bytes) -> Answer:
        """See Wire."""
        try:
            client = self._idle.pop() if self._idle else self._new_client()
            try:
                async with client.stream("POST", self._base_url + path, content=content, headers=headers) as response:
                    body = await _whole(response)
            finally:
                # Cookies must not reach the next question.
                client.cookies.clear()
                self._idle.append(client)
        except UNREACHABLE as error:
            raise _unreachable(error, self._base_url) from error
        return Answer(response.status_code, response.headers, unpacked(body, response.headers, self._base_url))

    def _new_client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            verify=self._context,
            trust_env=not is_loopback(self._base_url),
            timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
            headers={"accept-encoding": ACCEPTED_PACKINGS, "user-agent": USER_AGENT},
        )

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


async def probe_status(url: str, *, timeout_s: float) -> int:
    """Return the status of a GET; raises ProviderError without one."""
    try:
        async with httpx.AsyncClient(trust_env=not is_loopback(url), timeout=timeout_s) as client:
            return (await client.get(url)).status_code
    except UNREACHABLE as error:
        raise _unreachable(error, url) from error


def _unreachable(error: Exception, url: str) -> ProviderError:
    """Return the failure of a request without an answer."""
    name = type(error).__name__
    match error:
        case httpx.LocalProtocolError() | UnicodeEncodeError():
            return unsendable_header(name)
        case httpx.ProxyError() | ImportError():
            return _unusable_proxy(error)
        case ValueError() if "proxy" in str(error).lower():
            return _unusable_proxy(error)
        case httpx.ReadTimeout():
            return ProviderError("timeout", f"{name}: no answer from {without_login(url)} in time")
        case httpx.HTTPError() if not isinstance(error, httpx.UnsupportedProtocol):
            return network_error(name, url, error)
        case _:
            return ProviderError("request", f"{name}: '{without_login(url)}' is not a valid URL")


def _unusable_proxy(error: Exception) -> ProviderError:
    detail = f"{type(error).__name__}: cannot use the proxy set in the environment: {error}"
    return ProviderError("request", detail)
