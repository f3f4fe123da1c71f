"""Pieces of GitHub Flavored Markdown in which no text means anything but itself.

Agents and authors of pull requests write what they like: mentions that notify people, images that count who looks,
HTML, fences that end ours. In code none of these means anything, so that is where all such text stands.
"""

from __future__ import annotations

import html
import re

from agentv_ci.text import on_one_line, printable

NOTHING = "(empty)"


def code(text: str) -> str:
    """Return a text as a code span of one line."""
    line = on_one_line(text) or NOTHING
    ticks = "`" * (_longest_run(line) + 1)
    # A space is taken off both ends, and separates ticks of the text from ours.
    padded = f" {line} " if line.startswith("`") or line.endswith("`") else line
    return f"{ticks}{padded}{ticks}"


def cell_code(text: str) -> str:
    """Return a text as code in a cell of a table, where a bar ends the cell even inside a span."""
    # Behind a backslash of the text, ours would be the one that is taken for a character.
    return code(text.replace("\\|", "\\ |")).replace("|", "\\|")


def fence(text: str, language: str = "") -> str:
    """Return a text as a code block, line breaks and all."""
    return verbatim(printable(text.replace("\r\n", "\n").replace("\r", "\n")) or NOTHING, language)


def verbatim(text: str, language: str) -> str:
    """Return a text of ours as a code block, character by character."""
    ticks = "`" * max(3, _longest_run(text) + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def link(piece: str, address: str | None) -> str:
    """Return such a piece as a link, where there is an address; that is a quoted one of ours."""
    return piece if address is None else f"[{piece}]({address})"


def folded(title: str, body: str) -> str:
    """Return a part that opens when its title is clicked; `title` is plain text."""
    return f"<details><summary>{html.escape(on_one_line(title))}</summary>\n\n{body}\n\n</details>"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
