"""Requests over connections of one's own.

One shared httpx client does work proportional to its width on every request, and a client with a single connection
still takes several times as long as the protocol itself. So plain addresses have a connection for each question under
way. What httpx knows better stays there: proxies and odd addresses.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlsplit

from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.execute.apis.connection import BROKEN, Address, Connection, connect
from agentv_ci.execute.apis.reply import TooLong

CONNECT_TIMEOUT_S = 10.0
WRITE_TIMEOUT_S = 30.0
KEEPALIVE_S = 5.0
MAX_BODY_BYTES = 32 * 1024 * 1024
"""Unpacked; no answer in text is longer."""

PLAIN = re.compile(
    r"https?://(?:[A-Za-z0-9.-]+|\[[0-9a-f:]+\])(?::[1-9][0-9]{0,4})?(?:/[A-Za-z0-9._~!$&'()*+,;=:@/%-]*)?"
)


def is_plain(url: str) -> bool:
    """Whether an address needs no repair: the server gets it as it is written."""
    try:
        return PLAIN.fullmatch(url) is not None and urlsplit(url).port != 0
    except ValueError:
        return False


USER_AGENT = "agentv-ci"
PACKINGS = frozenset({"gzip", "x-gzip", "deflate"})
WRITTEN_AS_THEY_ARE = "/?:@!$&'()*+,;=%~"


class DecodingError(Exception):
    """A body that is not packed as its headers say."""


UNREACHABLE = (*BROKEN, DecodingError, ValueError, OverflowError)


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
        parts = urlsplit(base_url)
        assert parts.hostname is not None, "a plain address has a host"
        is_encrypted = parts.scheme == "https"
        port = parts.port or (443 if is_encrypted else 80)
        self._address = Address(parts.hostname, port, context if is_encrypted else None)
        self._path = parts.path
        self._own_headers = {
            "host": parts.netloc,
            "accept": "*/*",
            "accept-encoding": "gzip, deflate",
            "user-agent": USER_AGENT,
        }
        self._idle: list[Connection] = []

    async def post(self, path: str, *, headers: Mapping[str, str], content: bytes, timeout_s: float) -> Answer:
        """Return the answer; raises ProviderError when there is none."""
        named = {**self._own_headers, **headers, "content-length": str(len(content))}
        target = self._path + quote(path, safe=WRITTEN_AS_THEY_ARE)
        try:
            connection = await self._connection()
            try:
                status, told, body = await connection.post(
                    target, named, content, timeout_s=timeout_s, most_bytes=MAX_BODY_BYTES
                )
            finally:
                self._put_back(connection)
            return Answer(status, told, unpacked(body, told))
        except TooLong as error:
            raise _too_long() from error
        except UNREACHABLE as error:
            raise unreachable(error, self._base_url) from error

    async def _connection(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh(KEEPALIVE_S):
                return connection
            connection.close()
        return await connect(self._address, timeout_s=CONNECT_TIMEOUT_S)

    def _put_back(self, connection: Connection) -> None:
        if connection.may_be_used_again():
            self._idle.append(connection)
        else:
            connection.close()

    async def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().close()
        # The loop lets go of them in its next round, which may be its last.
        await asyncio.sleep(0)


def unpacked(body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return a body as it was before it was packed; raises DecodingError, and ProviderError for one that is too long.

    Packings that nobody asked for are left as they are.
    """
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
    require_bounds(len(body))
    return body


def _without_frame(data: bytes) -> bytes:
    """Unpack what some servers take for deflate: without the frame of RFC 1950."""
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, MAX_BODY_BYTES + 1)
    except zlib.error as error:
        raise DecodingError(str(error)) from error


def require_bounds(size: int) -> None:
    """Raise ProviderError for a body that nobody would want in memory."""
    if size > MAX_BODY_BYTES:
        raise _too_long()


def _too_long() -> ProviderError:
    return ProviderError("malformed", f"the answer has more than {MAX_BODY_BYTES // 1024 // 1024} MiB")


def unreachable(error: Exception, url: str) -> ProviderError:
    """Return the failure of a request that had no answer; httpx and `connection` name theirs alike."""
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
