"""Sentences on lines of a terminal, whose columns are not characters; the door to wcwidth."""

from __future__ import annotations

import re
import textwrap

_NARROW = re.compile("[\\n -~¡-¬®-ÿ–—‘’“”…]*")
"""Texts whose characters take a column each: what most runs print needs no tables."""


def wrapped(text: str, width: int, *, indent: str = "", whole: bool = False) -> list[str]:
    """Return a text on lines of at most `width` columns; lines after the first begin with `indent`.

    With `whole`, words that are longer, such as paths, stay whole: people copy them.
    """
    if _NARROW.fullmatch(text):
        return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=not whole, subsequent_indent=indent)
    import wcwidth

    return wcwidth.wrap(text, width, break_on_hyphens=False, break_long_words=not whole, subsequent_indent=indent)


def columns(text: str) -> int:
    """Return how many columns a printable text takes."""
    if _NARROW.fullmatch(text):
        return len(text)
    import wcwidth

    return wcwidth.width(text)


def clipped(text: str, width: int) -> str:
    """Return the beginning of a text that takes at most `width` columns, and whether it goes on."""
    if width < 1:
        return ""
    if columns(text) <= width:
        return text
    head = text[: width - 1]
    while columns(head) > width - 1:
        head = head[:-1]
    return head + "…"
