"""HTTP for providers; the door to httpx.

One shared httpx client does work proportional to its width on every request, so each question borrows a client
of its own, with a single connection that the next question finds warm.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from urllib.parse import urlsplit

import httpx

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ProviderError, World
from agentv_ci.errors import UsageError
from agentv_ci.execute.answers import one_line
from agentv_ci.execute.apis.refusals import refused
from agentv_ci.outside import read_json

CONNECT_TIMEOUT_S = 10.0
WRITE_TIMEOUT_S = 30.0
MAX_BODY_BYTES = 32 * 1024 * 1024
"""Unpacked; no answer in text is longer."""
UNREACHABLE = (httpx.HTTPError, httpx.InvalidURL, ImportError, ValueError, OverflowError, ExceptionGroup)
"""ImportError: a SOCKS proxy without its package. ValueError, OverflowError: an address or a proxy that is none."""


class Transport:
    """Posts JSON to one API."""

    def __init__(self, base_url: str, *, ca_bundle: str | None, world: World) -> None:
        self._base_url = base_url.rstrip("/")
        self._world = world
        self._idle: list[httpx.AsyncClient] = []
        self._trusts_environment = not _is_loopback(self._base_url)
        self._context = self._ssl_context(ca_bundle)

    def _ssl_context(self, ca_bundle: str | None) -> ssl.SSLContext:
        try:
            if ca_bundle is not None:
                return ssl.create_default_context(cafile=ca_bundle)
            if self._base_url.lower().startswith("https:"):
                return httpx.create_ssl_context(trust_env=True)
        except OSError as error:
            where = f"ca_bundle '{ca_bundle}'" if ca_bundle else "what SSL_CERT_FILE or SSL_CERT_DIR names"
            raise UsageError(f"{where} holds no certificates that can be read: {error}") from error
        return ssl.SSLContext(
            ssl.PROTOCOL_TLS_CLIENT
        )  # trusts nobody: plain HTTP needs no trust, and loading it is slow

    async def post(self, path: str, *, headers: Mapping[str, str], body: JsonObject, timeout_s: float) -> JsonObject:
        """Return the JSON object a server answers with; raises ProviderError for everything else."""
        try:
            async with self._client() as client:
                return await self._exchange(
                    client,
                    self._base_url + path,
                    content=json.dumps(body).encode("utf-8"),
                    headers={"content-type": "application/json"}
                    | {name.lower(): value for name, value in headers.items()},
                    limits=httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S, write=WRITE_TIMEOUT_S),
                )
        except UNREACHABLE as error:
            raise _unreachable(error, self._base_url) from error

    async def _exchange(
        self, client: httpx.AsyncClient, url: str, *, content: bytes, headers: Mapping[str, str], limits: httpx.Timeout
    ) -> JsonObject:
        async with client.stream("POST", url, content=content, headers=headers, timeout=limits) as response:
            text = await _text(response)
        if response.status_code >= 300:
            raise self._refused(response, text)
        return _object(text)

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx.AsyncClient]:
        if self._idle:
            client = self._idle.pop()
        else:
            client = httpx.AsyncClient(
                verify=self._context,
                trust_env=self._trusts_environment,
                limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
            )
        try:
            yield client
        finally:
            # A cookie would go to whichever question comes next.
            client.cookies.clear()
            self._idle.append(client)

    def _refused(self, response: httpx.Response, text: str) -> ProviderError:
        if 300 <= response.status_code < 400:
            target = response.headers.get("location", "nowhere")
            return ProviderError(
                "request",
                f"HTTP {response.status_code}: a redirect to {target}; check base_url",
                status=response.status_code,
            )
        body = _body(text)
        error = refused(response.status_code, response.headers, text if body is None else body, now=self._world.now())
        if response.status_code == 404:
            # The address is what is wrong as often as the model.
            error.detail += f" (asked {_without_login(str(response.url))})"
        return error

    async def close(self) -> None:
        """Close all connections."""
        while self._idle:
            await self._idle.pop().aclose()


async def probe_status(url: str, *, timeout_s: float) -> int:
    """Return the status of a GET; raises ProviderError when there is none."""
    try:
        async with httpx.AsyncClient(trust_env=not _is_loopback(url), timeout=timeout_s) as client:
            return (await client.get(url)).status_code
    except UNREACHABLE as error:
        raise _unreachable(error, url) from error


def _unreachable(error: Exception, base_url: str) -> ProviderError:
    name = type(error).__name__
    # Only what leads to the server: an address may hold a password.
    base_url = _without_login(base_url)
    if isinstance(error, (httpx.LocalProtocolError, UnicodeEncodeError)):
        # Their text repeats header values, which may be secret.
        return ProviderError(
            "request", f"{name}: a header cannot be sent; check api_key and headers for odd characters"
        )
    is_proxy = isinstance(error, ValueError) and "proxy" in str(error).lower()
    if is_proxy or isinstance(error, (ImportError, httpx.ProxyError)):
        return ProviderError("request", f"{name}: the proxy that the environment names cannot be used: {error}")
    if not isinstance(error, httpx.HTTPError) or isinstance(error, httpx.UnsupportedProtocol):
        return ProviderError("request", f"{name}: '{base_url}' is not a usable address")
    if isinstance(error, httpx.ReadTimeout):
        return ProviderError("timeout", f"{name}: no answer from {base_url} in time")
    return ProviderError("network", f"{name} at {base_url}: {error}".rstrip(": "), retryable=True)


def _without_login(url: str) -> str:
    return re.sub(r"//[^/@]*@", "//", url)


async def _text(response: httpx.Response) -> str:
    """The body as text. JSON is UTF-8, whatever charset a header names (RFC 8259, section 8.1)."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise ProviderError("malformed", f"the answer has more than {MAX_BODY_BYTES // 1024 // 1024} MiB")
        chunks.append(chunk)
    return b"".join(chunks).decode("utf-8-sig", "replace")


def _object(text: str) -> JsonObject:
    body = _body(text)
    if isinstance(body, dict):
        return body
    what = "not JSON" if body is None else "not a JSON object"
    raise ProviderError("malformed", f"the answer is {what}: {one_line(text)}")


def _body(text: str) -> JsonValue:
    try:
        return read_json(text)
    except ValueError:
        return None


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
