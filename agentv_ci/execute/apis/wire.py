"""Requests over connections of one's own; the door to httpcore.

One shared httpx client does work proportional to its width on every request, and a client with a single connection
still takes twice as long as the engine below it. So plain addresses are asked through that engine, httpcore, with a
connection for each question under way. What httpx knows better stays there: proxies and odd addresses.
"""

from __future__ import annotations

import re
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

import httpcore

from agentv_ci.contracts.exchange import ProviderError

CONNECT_TIMEOUT_S = 10.0
WRITE_TIMEOUT_S = 30.0
KEEPALIVE_S = 5.0
MAX_BODY_BYTES = 32 * 1024 * 1024
"""Unpacked; no answer in text is longer."""

PLAIN = re.compile(
    r"https?://(?:[A-Za-z0-9.-]+|\[[0-9a-f:]+\])(?::[1-9][0-9]{0,3}|:[1-5][0-9]{4})?(?:/[A-Za-z0-9._~!$&'()*+,;=:@/%-]*)?"
)
"""Addresses that need no repair: the server gets them as they are written."""


PACKINGS = frozenset({"gzip", "x-gzip", "deflate"})
WRITTEN_AS_THEY_ARE = "/?:@!$&'()*+,;=%~"


class DecodingError(Exception):
    """A body that is not packed as its headers say."""


UNREACHABLE = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    DecodingError,
    ValueError,
    OverflowError,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said."""

    status: int
    headers: Mapping[str, str]
    """Names are lower case."""
    body: bytes
    """Unpacked."""


class Wire(Protocol):
    """Posts bytes to one API."""

    async def post(self, path: str, *, headers: Mapping[str, str], content: bytes, timeout_s: float) -> Answer:
        """Return the answer; raises ProviderError when there is none."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class Direct:
    """See Wire: each question borrows a connection, which the next question finds warm."""

    def __init__(self, base_url: str, context: ssl.SSLContext | None) -> None:
        self._base_url = base_url
        self._context = context
        self._idle: list[httpcore.AsyncConnectionPool] = []

    async def post(self, path: str, *, headers: Mapping[str, str], content: bytes, timeout_s: float) -> Answer:
        """Return the answer; raises ProviderError when there is none."""
        url = self._base_url + quote(path, safe=WRITTEN_AS_THEY_ARE)
        try:
            async with self._connection() as connection:
                response = await connection.handle_async_request(_request(url, headers, content, timeout_s))
                try:
                    return await _read(response)
                finally:
                    await response.aclose()
        except UNREACHABLE as error:
            raise unreachable(error, self._base_url) from error

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[httpcore.AsyncConnectionPool]:
        if self._idle:
            connection = self._idle.pop()
        else:
            # A pool of one: it knows when a connection cannot be used again.
            connection = httpcore.AsyncConnectionPool(
                ssl_context=self._context, max_connections=1, keepalive_expiry=KEEPALIVE_S
            )
        try:
            yield connection
        finally:
            if _is_clean(connection):
                self._idle.append(connection)
            else:
                await connection.aclose()

    async def close(self) -> None:
        """Close all connections."""
        while self._idle:
            await self._idle.pop().aclose()


def _request(url: str, headers: Mapping[str, str], content: bytes, timeout_s: float) -> httpcore.Request:
    address = httpcore.URL(url)
    host = address.host.decode("ascii")
    host = f"[{host}]" if ":" in host else host
    named = {
        "host": host if address.port is None else f"{host}:{address.port}",
        "accept": "*/*",
        "accept-encoding": "gzip, deflate",
        "user-agent": "agentv-ci",
        **headers,
        "content-length": str(len(content)),
    }
    return httpcore.Request(
        b"POST",
        address,
        headers=[(name.encode("ascii"), value.encode("ascii")) for name, value in named.items()],
        content=content,
        extensions={
            "timeout": {"connect": CONNECT_TIMEOUT_S, "read": timeout_s, "write": WRITE_TIMEOUT_S, "pool": None}
        },
    )


async def _read(response: httpcore.Response) -> Answer:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
    return Answer(response.status, headers, await whole(response.aiter_stream(), headers))


def _is_clean(connection: httpcore.AsyncConnectionPool) -> bool:
    """Whether nothing follows an answer: it would be taken for the answer to the next question."""
    # httpcore does not tell. Without these names a connection counts as clean, as it does for httpcore.
    for each in connection.connections:
        state = getattr(getattr(each, "_connection", None), "_h11_state", None)
        if state is not None and state.trailing_data[0]:
            return False
    return True


async def whole(pieces: AsyncIterator[bytes], headers: Mapping[str, str]) -> bytes:
    """Return a body, unpacked as its headers say; raises ProviderError for one that nobody would want in memory."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in pieces:
        size += len(chunk)
        _require_bounds(size)
        chunks.append(chunk)
    body = b"".join(chunks)
    packings = [each.strip().lower() for each in headers.get("content-encoding", "").split(",")]
    for packing in reversed([each for each in packings if each in PACKINGS]):
        body = _unpacked(body, packing)
    return body


def _unpacked(data: bytes, packing: str) -> bytes:
    """Unpack no more than an answer may have, however much there is."""
    try:
        body = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(data, MAX_BODY_BYTES + 1)
    except zlib.error as error:
        if packing != "deflate":
            raise DecodingError(str(error)) from error
        body = _without_frame(data)
    _require_bounds(len(body))
    return body


def _without_frame(data: bytes) -> bytes:
    """Unpack what some servers take for deflate: without the frame of RFC 1950."""
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, MAX_BODY_BYTES + 1)
    except zlib.error as error:
        raise DecodingError(str(error)) from error


def _require_bounds(size: int) -> None:
    if size > MAX_BODY_BYTES:
        raise ProviderError("malformed", f"the answer has more than {MAX_BODY_BYTES // 1024 // 1024} MiB")


def unreachable(error: Exception, url: str) -> ProviderError:
    """Return the failure of a request that had no answer; httpx and httpcore name theirs alike."""
    name = type(error).__name__
    # Only what leads to the server: an address may hold a password.
    url = without_login(url)
    if isinstance(error, UnicodeEncodeError) or name == "LocalProtocolError":
        # Their text repeats header values, which may be secret.
        return ProviderError(
            "request", f"{name}: a header cannot be sent; check api_key and headers for odd characters"
        )
    is_proxy = isinstance(error, ValueError) and "proxy" in str(error).lower()
    if is_proxy or isinstance(error, ImportError) or name == "ProxyError":
        return ProviderError("request", f"{name}: the proxy that the environment names cannot be used: {error}")
    if name in UNUSABLE or isinstance(error, (ValueError, OverflowError, ExceptionGroup)):
        return ProviderError("request", f"{name}: '{url}' is not a usable address")
    if name == "ReadTimeout":
        return ProviderError("timeout", f"{name}: no answer from {url} in time")
    return ProviderError("network", f"{name} at {url}: {error}".rstrip(": "), retryable=True)


UNUSABLE = frozenset({"UnsupportedProtocol", "InvalidURL"})


def without_login(url: str) -> str:
    """Return an address for people to read."""
    return re.sub(r"//[^/@]*@", "//", url)
