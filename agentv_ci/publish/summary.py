"""A job's summary: GitHub shows none that is larger than 1 MiB (GitHub Docs, "Workflow commands")."""

from __future__ import annotations

from collections.abc import Callable

MAX_BYTES = 1_000_000


def fitted(text: Callable[[int], str]) -> bytes:
    """Return the longest text that is shown; `text` makes one of at most so many characters."""
    limit = MAX_BYTES
    while len(made := text(limit).encode("utf-8", "replace")) > MAX_BYTES:
        # A character may have up to four bytes.
        limit = limit * 3 // 4
    return made
