"""Settings of HTTP targets that no request can be sent with."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from agentv_ci.contracts.targets import AzureOpenAITarget, HttpTarget

FRAMING_HEADERS = frozenset({"content-length", "transfer-encoding", "connection", "upgrade"})
"""Headers that the HTTP client sets itself."""
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
INVALID_ADDRESS = "must begin with http:// or https:// and a host"


def refused_settings(target: HttpTarget) -> Iterator[tuple[str, str]]:
    """Yield the fields of a target with values that cannot be used, and why; never the value itself."""
    yield from _of_address(target)
    yield from _of_headers(target)


def is_address(address: str) -> bool:
    """Whether a URL has the scheme of HTTP and a host."""
    try:
        split = urlsplit(address)
        _ = split.port  # raises ValueError
    except ValueError:
        return False
    host = split.hostname or ""
    has_host = bool(host.strip(".")) and host[0] != "."
    return split.scheme in ("http", "https") and has_host and not re.search(r"\s", address)


def _of_address(target: HttpTarget) -> Iterator[tuple[str, str]]:
    endpoint = target.endpoint if isinstance(target, AzureOpenAITarget) else None
    field = "base_url" if endpoint is None else "endpoint"
    if endpoint is not None and target.base_url is not None:
        yield "base_url", "it is an alias of endpoint, which is set too"
    try:
        address = target.address()
    except ValueError:
        yield field, INVALID_ADDRESS
        return
    if address is None:
        return
    if not is_address(address):
        yield field, INVALID_ADDRESS
    elif "?" in address or "#" in address:
        yield field, "must not have a query or a fragment; use extra_body or headers"


def _of_headers(target: HttpTarget) -> Iterator[tuple[str, str]]:
    headers = target.headers or {}
    for name in headers:
        if name.lower() in FRAMING_HEADERS or not HEADER_NAME.fullmatch(name):
            yield f"headers.{name}", "this header cannot be set"
    values = {"api_key": target.api_key, **{f"headers.{name}": value for name, value in headers.items()}}
    for field, value in values.items():
        if value is not None and not (value.isascii() and value.isprintable()):
            yield field, "has characters that are not allowed in a header"
