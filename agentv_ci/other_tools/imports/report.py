"""MIGRATION.md: what became of each construct, with its places."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from agentv_ci.base.text import counted, on_one_line
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.other_tools import Fate, ImportNote
from agentv_ci.contracts.source import relative

TITLES: dict[Fate, str] = {
    "dropped": "Dropped: the eval files do not have these",
    "approximated": "Approximated: these mean something slightly different",
    "kept": "Kept",
}
WARNINGS = "What `validate` says; `.agentv.yaml` turns the warnings off"
PLACES = 12
"""Places of one construct that are listed; the others are counted."""


def migration_report(
    notes: Sequence[ImportNote],
    written: Collection[str],
    diagnostics: Sequence[Diagnostic],
    root: Path,
    command: str,
) -> str:
    """Return the report in Markdown.

    Paths are from `root`, `diagnostics` are those of what was written.
    """
    counts = ", ".join(
        f"{sum(note.fate == fate for note in notes)} {fate}"
        for fate in ("kept", "approximated", "dropped")
    )
    lines = [
        "# Migration",
        "",
        f"`{command}` wrote {', '.join(f'`{name}`' for name in sorted(written))}.",
        f"{counts}. Read the first two tables; then delete this file.",
    ]
    for fate, title in TITLES.items():
        found = [note for note in notes if note.fate == fate]
        if found:
            lines += ["", f"## {title}", "", *_table(found, root)]
        if fate == "approximated" and diagnostics:
            lines += ["", f"## {WARNINGS}", "", *_warnings(diagnostics, root)]
    return "\n".join(lines) + "\n"


def _warnings(diagnostics: Sequence[Diagnostic], root: Path) -> Iterator[str]:
    yield "| rule | what | where |"
    yield "|---|---|---|"
    for diagnostic in diagnostics:
        yield (
            f"| {diagnostic.rule} | {_cell(diagnostic.message)} | "
            f"{relative(Path(diagnostic.path), root)}:{diagnostic.line} |"
        )


def _table(notes: Sequence[ImportNote], root: Path) -> Iterator[str]:
    places: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        place = f"{relative(note.path, root)}:{note.line}"
        listed = places.setdefault((note.construct, note.how), [])
        if place not in listed:
            listed.append(place)
    yield "| what | how or why | where |"
    yield "|---|---|---|"
    for (construct, how), where in places.items():
        more = ""
        if len(where) > PLACES:
            more = f" and {counted(len(where) - PLACES, 'more place')}"
        yield f"| `{_cell(construct)}` | {_cell(how)} | {', '.join(where[:PLACES])}{more} |"


def _cell(text: str) -> str:
    return on_one_line(text).replace("|", "\\|").replace("`", "'")
