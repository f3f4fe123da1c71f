"""GitHub Flavored Markdown that shows untrusted text literally.

Agents and authors of pull requests can write mentions that notify people, tracking images, HTML,
and fences that close ours. Inside code none of these has an effect, so all such text is code.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from agentv_ci.base.text import on_one_line, printable, shortened
from agentv_ci.report.view import Links, more_text

if TYPE_CHECKING:
    # Few reports have diagnostics.
    from agentv_ci.contracts.command_output import DiagnosticRecord
    from agentv_ci.contracts.proof import ProofFinding

NOTHING = "(empty)"
MAX_TEXT = 300
"""Characters of a message or a hint."""

SIGNS: Mapping[str, str] = {
    "pass": "✅",
    "borderline": "🟡",
    "fail": "❌",
    "error": "⚠️",
    "budget": "⛔",
    "undecided": "🤷",
    "interrupted": "⛔",
    "nothing": "➖",
    "dry-run": "🧪",
    "invalid": "❌",
}
"""Signs of the verdicts of cases, gates and jobs."""


def code(text: str) -> str:
    """Return a text as a code span on one line."""
    line = on_one_line(text) or NOTHING
    ticks = "`" * (_longest_run(line) + 1)
    # Markdown strips one space from both ends; it separates backticks of the text from ours.
    padded = f" {line} " if line.startswith("`") or line.endswith("`") else line
    return f"{ticks}{padded}{ticks}"


def cell_code(text: str) -> str:
    """Return a text as code in a table cell, where a bar ends the cell even inside a span."""
    # After a backslash of the text, ours would be taken literally.
    return code(text.replace("\\|", "\\ |")).replace("|", "\\|")


def fence(text: str, language: str = "") -> str:
    """Return a text as a code block that keeps its line breaks."""
    return verbatim(printable(text.replace("\r\n", "\n").replace("\r", "\n")) or NOTHING, language)


def verbatim(text: str, language: str) -> str:
    """Return a trusted text as a code block, unchanged."""
    ticks = "`" * max(3, _longest_run(text) + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def link(piece: str, address: str | None) -> str:
    """Return a piece of Markdown as a link to an address, which must be quoted.

    Without one, the piece alone.
    """
    if address is None:
        return piece
    return f"[{piece}]({address})"


def item(piece: str) -> str:
    """Return a piece of Markdown as an item of a list."""
    return f"- {piece}"


def list_of(pieces: Iterable[str]) -> str:
    """Return pieces of Markdown as a list."""
    return "\n".join(map(item, pieces))


def first_items(items: Sequence[str], limit: int) -> list[str]:
    """Return the first items of a list, and one that counts the others."""
    return [*items[:limit], *map(item, more_text(len(items), limit))]


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int | None = None) -> str:
    """Return a table; if `left` is given, all columns after the first `left` ones hold numbers."""
    rule = ["---" if left is None or place < left else "--:" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def folded(title: str, body: str) -> str:
    """Return a collapsed section; `title` is plain text."""
    return f"<details><summary>{html.escape(on_one_line(title))}</summary>\n\n{body}\n\n</details>"


def diagnostic_item(found: DiagnosticRecord | ProofFinding, path: str, links: Links) -> str:
    """Return a diagnostic as an item of a list; `path` is relative to the repository."""
    place = link(code(f"{path}:{found.line}:{found.column}"), links.to(path, found.line))
    hint = ""
    if found.hint:
        hint = f"; {code(shortened(found.hint, MAX_TEXT))}"
    sign = "❌" if found.severity == "error" else "🟡"
    return f"- {sign} {place} {code(shortened(found.message, MAX_TEXT))} {found.rule}{hint}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
