"""Texts that every parser of XML 1.0 accepts, and their size."""

from __future__ import annotations

import re

from agentv_ci.base.text import ANSI

MAX_LINE = 300
MAX_TEXT = 10_000

_NONCHARACTERS = "".join(
    f"{chr(plane << 16 | 0xFFFE)}-{chr(plane << 16 | 0xFFFF)}" for plane in range(17)
)
_ILLEGAL = re.compile(
    f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef{_NONCHARACTERS}]"
)


def clean(text: str) -> str:
    """Return a text without terminal colors and with LF line ends, for XML.

    What XML forbids becomes U+FFFD.
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _ILLEGAL.sub("\ufffd", ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))


def path(text: str) -> str:
    """Return a path for an attribute, uncut so that the file is found."""
    return clean(text).replace("\n", " ")


def line(text: str) -> str:
    """Return a text for an attribute, on one line: consumers fold or drop line breaks there."""
    words = " ".join(clean(text[:MAX_TEXT]).split())
    if len(words) <= MAX_LINE:
        return words
    return words[: MAX_LINE - 1] + "…"


def size(text: str) -> int:
    """Return how many bytes a text takes between tags."""
    return (
        len(text.encode("utf-8", "surrogatepass"))
        + 4 * text.count("&")
        + 3 * text.count("<")
        + 3 * text.count(">")
    )


class Excerpt:
    """The beginning of a text, which can be cut further, and the length of the whole."""

    __slots__ = ("_head", "_length")

    def __init__(self, text: str) -> None:
        self._head = clean(text[:MAX_TEXT])
        self._length = len(self._head) + max(len(text) - MAX_TEXT, 0)

    def cut(self, limit: int) -> None:
        """Keep at most `limit` characters."""
        self._head = self._head[:limit]

    @property
    def size(self) -> int:
        """How many bytes it takes between tags."""
        return size(self._head)

    def __str__(self) -> str:
        left = self._length - len(self._head)
        if not left:
            return self._head
        return f"{self._head}\n… {left:,} more character{'s' if left > 1 else ''}"
