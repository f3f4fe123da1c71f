"""Server-sent events and the words they carry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.servers.http import Asked, Reply, answers

__all__ = ["Asked", "Json", "Reply", "answers", "event", "pieces", "streams", "words"]

Json = dict[str, Any]


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
