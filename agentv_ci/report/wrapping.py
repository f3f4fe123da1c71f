"""Wrap text for a terminal, where a character may take no column or two; the door to wcwidth."""

from __future__ import annotations

import re
import textwrap

_NARROW = re.compile("[\\n -~¡-¬®-ÿ–—‘’“”…]*")
"""Texts whose characters take one column each, as most do: these need no wcwidth."""


def wrapped(text: str, width: int, *, indent: str = "", whole: bool = False) -> list[str]:
    """Return a text as lines of at most `width` columns; lines after the first begin with `indent`.

    With `whole`, longer words, such as paths, are not broken, so that they can be copied.
    """
    if _NARROW.fullmatch(text):
        return textwrap.wrap(
            text,
            width,
            break_on_hyphens=False,
            break_long_words=not whole,
            subsequent_indent=indent,
        )
    import wcwidth

    return wcwidth.wrap(
        text, width, break_on_hyphens=False, break_long_words=not whole, subsequent_indent=indent
    )


def columns(text: str) -> int:
    """Return how many columns a printable text takes."""
    if _NARROW.fullmatch(text):
        return len(text)
    import wcwidth

    return wcwidth.width(text)


def clipped(text: str, width: int) -> str:
    """Return a text cut to at most `width` columns, with an ellipsis if anything was cut."""
    if width < 1:
        return ""
    if columns(text) <= width:
        return text
    head = text[: width - 1]
    while columns(head) > width - 1:
        head = head[:-1]
    return head + "…"
