"""Bytes over HTTP: what an answer is, how it is unpacked, and the failures of a request that has none."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import urlsplit

from agentv_ci.contracts.exchange import ProviderError

CONNECT_TIMEOUT_S = 10.0
MAX_BODY_BYTES = 32 * 1024 * 1024
"""Unpacked; no answer in text is longer."""
USER_AGENT = "agentv-ci"
ACCEPTED_PACKINGS = "gzip, deflate"
PACKINGS = frozenset({"gzip", "x-gzip", "deflate"})


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

    async def post(self, path: str, *, headers: Mapping[str, str], content: bytes) -> Answer:
        """Return the answer; raises ProviderError when there is none. How long it may take is up to the caller."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def unpacked(body: bytes, headers: Mapping[str, str], url: str) -> bytes:
    """Return a body as it was before it was packed; raises ProviderError for one that is too long or not packed so.

    Packings that were not asked for are left as they are.
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
    """Unpack no more than an answer may have, however much there is."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(data, MAX_BODY_BYTES + 1)
    except zlib.error:
        if packing != "deflate":
            raise
        # Some servers leave out the frame of RFC 1950.
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, MAX_BODY_BYTES + 1)


def require_bounds(size: int, most_bytes: int = MAX_BODY_BYTES) -> None:
    """Raise ProviderError for a body that is too long to be an answer."""
    if size > most_bytes:
        raise ProviderError("malformed", f"the answer has more than {most_bytes // 1024 // 1024} MiB")


def network_error(name: str, url: str, reason: object = "") -> ProviderError:
    """Return the failure of a request that may succeed a moment later; `name` is what HTTP libraries call it."""
    return ProviderError("network", f"{name} at {without_login(url)}: {reason}".rstrip(": "), retryable=True)


def unsendable_header(name: str) -> ProviderError:
    """Return the failure of a request with a header that HTTP does not allow; its value may be secret."""
    return ProviderError("request", f"{name}: a header cannot be sent; check api_key and headers for odd characters")


def without_login(url: str) -> str:
    """Return an address without the password that it may hold."""
    return re.sub(r"//[^/@]*@", "//", url)


def is_loopback(url: str) -> bool:
    """Whether an address is one of this machine."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
