"""HTTP answers, their decompression, and the failures of requests."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from agentv_ci.contracts.exchange import ProviderError

CONNECT_TIMEOUT_S = 10.0
MAX_BODY_BYTES = 32 * 1024 * 1024
"""The longest answer, decompressed."""
USER_AGENT = "agentv-ci"
ACCEPTED_PACKINGS = "gzip, deflate"
PACKINGS = frozenset({"gzip", "x-gzip", "deflate"})


class Answer(Struct, frozen=True):
    """The answer of a server."""

    status: int
    headers: Mapping[str, str]
    """Names are lower case."""
    body: bytes
    """Decompressed."""


class Wire(Protocol):
    """Posts bytes to one API."""

    async def post(self, path: str, *, headers: Mapping[str, str], content: bytes) -> Answer:
        """Return the answer; raises ProviderError. The caller sets a time limit."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def unpacked(body: bytes, headers: Mapping[str, str], url: str) -> bytes:
    """Return a decompressed body; raises ProviderError for one that is too long or damaged.

    Encodings that were not requested are ignored.
    """
    packings = [each.strip().lower() for each in headers.get("content-encoding", "").split(",")]
    for packing in reversed([each for each in packings if each in PACKINGS]):
        try:
            body = _unpacked_once(body, packing)
        except zlib.error as error:
            raise network_error("DecodingError", url, error) from error
        require_bounds(len(body))
    return body


def _unpacked_once(data: bytes, packing: str) -> bytes:
    """Decompress at most as much as an answer may have."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(data, MAX_BODY_BYTES + 1)
    except zlib.error:
        if packing != "deflate":
            raise
        # Some servers omit the zlib header (RFC 1950).
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, MAX_BODY_BYTES + 1)


def require_bounds(size: int, most_bytes: int = MAX_BODY_BYTES) -> None:
    """Raise ProviderError for a body that is too long."""
    if size > most_bytes:
        raise ProviderError("malformed", f"the answer is larger than {most_bytes // 1024 // 1024} MiB")


def network_error(name: str, url: str, reason: object = "") -> ProviderError:
    """Return the failure of a request that may be retried; `name` is httpx's name for it."""
    detail = f"{name} at {without_login(url)}: {reason}".rstrip(": ")
    return ProviderError("network", detail, retryable=True, unreachable=name == "ConnectError")


def unsendable_header(name: str) -> ProviderError:
    """Return the failure of a request with an invalid header; never shows its value, which may be secret."""
    return ProviderError("request", f"{name}: invalid header; check api_key and headers for invalid characters")


def without_login(url: str) -> str:
    """Return an address without user name and password."""
    return re.sub(r"//[^/@]*@", "//", url)


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
