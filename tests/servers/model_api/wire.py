"""What goes over the wire, whichever vendor is spoken: a request as it came in and a reply as it goes out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request."""

    method: str
    path: str
    """With its query."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Any
    """The JSON of the body; None without a body, or with one that is not JSON."""

    @property
    def route(self) -> str:
        return urlsplit(self.path).path

    @property
    def query(self) -> Mapping[str, str]:
        return dict(parse_qsl(urlsplit(self.path).query))

    @property
    def key(self) -> str | None:
        """The key as a bearer token."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token if scheme.lower() == "bearer" else None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    streamed: bool = False
    """Whether the body goes out in chunks of the transfer encoding."""
    cut_at: int | None = None
    """After how many bytes of the body the connection is dropped."""


def answers(status: int, body: object, headers: Mapping[str, str] | None = None) -> Reply:
    """Any JSON."""
    return Reply(status, json.dumps(body).encode(), {"content-type": "application/json", **(headers or {})})


def streams(events: Iterable[str], headers: Mapping[str, str] | None = None) -> Reply:
    """Server-sent events."""
    named = {"content-type": "text/event-stream; charset=utf-8", **(headers or {})}
    return Reply(200, "".join(events).encode(), named, streamed=True)


def event(data: object, name: str | None = None, *, end: str = "\n") -> str:
    """One server-sent event; characters beyond ASCII are not escaped, so that packets may split them."""
    named = f"event: {name}{end}" if name else ""
    return f"{named}data: {json.dumps(data, ensure_ascii=False)}{end}{end}"


def words(text: str) -> frozenset[str]:
    """Names, separated by blanks."""
    return frozenset(text.split())


def pieces(text: str) -> Sequence[str]:
    """The text as a model would stream it: word by word."""
    return re.findall(r"\s*\S+\s*?(?=\s|$)|\s+$", text)
