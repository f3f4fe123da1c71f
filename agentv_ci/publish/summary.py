"""A job's summary: GitHub shows none that is larger than 1 MiB (GitHub Docs, "Workflow commands")."""

from __future__ import annotations

from collections.abc import Callable

MAX_BYTES = 1_000_000


MIN_CHARACTERS = 20_000


def fitted(text: Callable[[int], str], before: int) -> bytes:
    """Return the longest text that is shown behind `before` bytes; empty when there is no room for one.

    `text` makes one of at most so many characters.
    """
    limit = left = MAX_BYTES - before
    while limit >= MIN_CHARACTERS:
        if len(made := text(limit).encode("utf-8", "replace")) <= left:
            return made
        # A character may have up to four bytes.
        limit = limit * 3 // 4
    return b""
