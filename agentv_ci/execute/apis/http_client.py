"""HTTP for providers through httpx: connections, proxies, limits, and the failures of requests."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import httpx
from msgspec import Struct

from agentv_ci.base.proxies import proxy_for
from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.errors import UsageError
from agentv_ci.execute.apis.compression import ACCEPTED_ENCODINGS, decompressed
from agentv_ci.execute.apis.connection import OneConnection

CONNECT_TIMEOUT_S = 10.0
MAX_BODY_BYTES = 32 * 1024 * 1024
"""The longest answer, decompressed."""
NOTHING = httpx.ByteStream(b"")
OWN_HEADERS = {"accept": "*/*", "accept-encoding": ACCEPTED_ENCODINGS, "user-agent": "agentv-ci"}


class HttpAnswer(Struct, frozen=True):
    """The answer of a server."""

    status: int
    headers: Mapping[str, str]
    """Names are lower case."""
    body: bytes
    """Decompressed."""


class HttpClient:
    """Posts bytes to one API.

    A question takes an idle client or a new one, and puts it back. One client for all would check
    all of its connections on every request.
    """

    def __init__(self, base_url: str, ca_bundle: str | None) -> None:
        self._base_url = base_url
        self._context = trusted_certificates(base_url, ca_bundle)
        self._idle: list[httpx.AsyncClient] = []

    async def post(self, path: str, *, headers: Mapping[str, str], content: bytes) -> HttpAnswer:
        """Return the answer, also of a redirect; raises ProviderError.

        The caller sets a time limit.
        """
        try:
            url = _parsed(self._base_url + path)
            request = httpx.Request(
                "POST", url, headers={**OWN_HEADERS, **headers}, content=content
            )
            client = self._idle.pop() if self._idle else self._new_client(url)
            try:
                response = await client.send(request, stream=True)
                body = await _body(response)
            finally:
                self._idle.append(client)
        except REQUEST_ERRORS as error:
            raise _request_failure(error, self._base_url) from error
        return HttpAnswer(
            response.status_code, response.headers, self._decompressed(body, response)
        )

    def _new_client(self, url: httpx.URL) -> httpx.AsyncClient:
        proxy = proxy_for(url)
        if proxy is None:
            transport: httpx.AsyncBaseTransport = OneConnection(self._context)
        else:
            transport = _transport(proxy, self._context)
        return CookielessClient(
            transport=transport, timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S)
        )

    def _decompressed(self, body: bytes, response: httpx.Response) -> bytes:
        try:
            whole = decompressed(
                body, response.headers.get("content-encoding", ""), MAX_BODY_BYTES + 1
            )
        except ValueError as error:
            raise network_error("DecodingError", self._base_url, error) from error
        require_bounds(len(whole))
        return whole

    async def close(self) -> None:
        """Close all connections."""
        while self._idle:
            await self._idle.pop().aclose()


def trusted_certificates(base_url: str, ca_bundle: str | None) -> ssl.SSLContext:
    """Return the trusted certificates; none for plain HTTP, because loading them is slow.

    Raises UsageError.
    """
    try:
        if ca_bundle is not None:
            return ssl.create_default_context(cafile=ca_bundle)
        if base_url.lower().startswith("https:"):
            return httpx.create_ssl_context()
    except OSError as error:
        where = "SSL_CERT_FILE or SSL_CERT_DIR"
        if ca_bundle:
            where = f"ca_bundle '{ca_bundle}'"
        raise UsageError(f"cannot read certificates from {where}: {error}") from error
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class NoCookies(httpx.Cookies):
    """Cookies that are never set: nothing of an answer may reach the next question."""

    def extract_cookies(self, response: httpx.Response) -> None:
        """Ignore the cookies of a response."""


class CookielessClient(httpx.AsyncClient):
    """A client that keeps no cookies."""

    cookies: Any = NoCookies()


@lru_cache(maxsize=64)
def _parsed(url: str) -> httpx.URL:
    """Return an address; raises InvalidURL."""
    return httpx.URL(url)


def _transport(proxy: str | None, context: ssl.SSLContext) -> httpx.AsyncHTTPTransport:
    """Return httpx's own transport; raises ProviderError if it cannot use the proxy."""
    try:
        one = httpx.Limits(max_connections=1, max_keepalive_connections=1)
        return httpx.AsyncHTTPTransport(verify=context, proxy=proxy, limits=one)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        # ImportError: a SOCKS proxy without its package.
        raise _unusable_proxy(error) from error


async def _body(response: httpx.Response) -> bytes:
    """Return the body, as it was sent; raises ProviderError if it is too long."""
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in response.aiter_raw():
            size += len(piece)
            require_bounds(size)
            pieces.append(piece)
    finally:
        await response.aclose()
        # Its stream refers to the response: otherwise only the garbage collector would free both.
        response.stream = NOTHING
    return b"".join(pieces)


def require_bounds(size: int) -> None:
    """Raise ProviderError for a body that is too long."""
    if size > MAX_BODY_BYTES:
        raise ProviderError(
            "malformed", f"the answer is larger than {MAX_BODY_BYTES // 1024 // 1024} MiB"
        )


async def probe_status(url: str, *, timeout_s: float) -> int:
    """Return the status of a GET; raises ProviderError without one."""
    try:
        transport = _transport(proxy_for(httpx.URL(url)), trusted_certificates(url, None))
        async with CookielessClient(transport=transport, timeout=timeout_s) as client:
            return (await client.get(url)).status_code
    except REQUEST_ERRORS as error:
        raise _request_failure(error, url) from error


REQUEST_ERRORS = (httpx.HTTPError, httpx.InvalidURL, ValueError, OverflowError, ExceptionGroup)
"""ValueError, OverflowError: an invalid address."""


def _request_failure(error: Exception, url: str) -> ProviderError:
    """Return the failure of a request without an answer."""
    name = type(error).__name__
    match error:
        case httpx.LocalProtocolError() | UnicodeEncodeError():
            # Its value may be secret.
            return ProviderError(
                "request",
                f"{name}: invalid header; check api_key and headers for invalid characters",
            )
        case httpx.ProxyError():
            return _unusable_proxy(error)
        case httpx.ReadTimeout():
            return ProviderError("timeout", f"{name}: no answer from {without_login(url)} in time")
        case httpx.HTTPError() if not isinstance(error, httpx.UnsupportedProtocol):
            return network_error(name, url, error)
        case _:
            return ProviderError("request", f"{name}: '{without_login(url)}' is not a valid URL")


def network_error(name: str, url: str, reason: object) -> ProviderError:
    """Return the failure of a request that may be retried; `name` is httpx's name for it."""
    detail = f"{name} at {without_login(url)}: {reason}".rstrip(": ")
    return ProviderError("network", detail, retryable=True, unreachable=name == "ConnectError")


def _unusable_proxy(error: Exception) -> ProviderError:
    detail = f"{type(error).__name__}: cannot use the proxy set in the environment: {error}"
    return ProviderError("request", detail)


def without_login(url: str) -> str:
    """Return an address without user name and password."""
    return re.sub(r"//[^/@]*@", "//", url)
