"""What only the values of a target show: addresses, headers and commands that nobody can use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.cli_template import CLI_PLACEHOLDERS, placeholders, quoted_placeholders
from agentv_ci.contracts.environment_references import variable_of
from agentv_ci.contracts.targets import AzureOpenAITarget, CliTarget, HttpTarget, Target

FRAMING_HEADERS = frozenset({"content-length", "transfer-encoding", "connection", "upgrade"})
"""Headers that say where a request ends, and in which protocol; the client's own."""
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
NO_ADDRESS = "it does not begin with http:// or https:// and a host"


def unfit(target: Target, sources: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for every value of a resolved target that cannot be used; it never holds the value.

    `sources`: field → the environment variable that its value comes from.
    """
    for field, reason in _reasons(target):
        source = f" (read from {sources[field]})" if field in sources else ""
        yield f"the value of {field}{source} is unfit: {reason}"


def _reasons(target: Target) -> Iterator[tuple[str, str]]:
    for field, value in target.model_dump(mode="json", exclude_none=True).items():
        if _holds_reference(value):
            yield field, "it is a reference itself"
    if isinstance(target, HttpTarget):
        yield from _of_address(target)
        yield from _of_headers(target)
    if isinstance(target, CliTarget):
        for name in placeholders(target.command_template):
            if name not in CLI_PLACEHOLDERS:
                yield "command_template", f"unknown placeholder {{{name}}}"
        for name in quoted_placeholders(target.command_template):
            yield "command_template", f"{{{name}}} stands inside quotes or behind a backslash; it is quoted already"


def _holds_reference(value: JsonValue) -> bool:
    match value:
        case str():
            return variable_of(value) is not None
        case list():
            return any(map(_holds_reference, value))
        case _:
            # Maps are the author's own: what looks like a reference there is a value.
            return False


def _of_address(target: HttpTarget) -> Iterator[tuple[str, str]]:
    endpoint = target.endpoint if isinstance(target, AzureOpenAITarget) else None
    field = "base_url" if endpoint is None else "endpoint"
    if endpoint is not None and target.base_url is not None:
        yield "base_url", "it is another word for endpoint, which is given too"
    try:
        address = target.address()
        split = urlsplit(address or "")
        _ = split.port  # reading it checks it
    except ValueError:
        yield field, NO_ADDRESS
        return
    if address is None:
        return
    host = split.hostname or ""
    if split.scheme not in ("http", "https") or not host.strip(".") or host[0] == "." or re.search(r"\s", address):
        yield field, NO_ADDRESS
    elif split.query or split.fragment:
        yield field, "it has a query; further keys of the request belong into extra_body or headers"


def _of_headers(target: HttpTarget) -> Iterator[tuple[str, str]]:
    headers = target.headers or {}
    for name in headers:
        if name.lower() in FRAMING_HEADERS or not HEADER_NAME.fullmatch(name):
            yield f"headers.{name}", "it is a header that no target can set"
    values = {"api_key": target.api_key, **{f"headers.{name}": value for name, value in headers.items()}}
    for field, value in values.items():
        if value is not None and not (value.isascii() and value.isprintable()):
            yield field, "it has characters that no header can carry"
