"""MIGRATION.md: what became of each construct, with its places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from agentv_ci.base.text import counted, on_one_line
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.other_tools import Fate, ImportedFiles, ImportNote
from agentv_ci.contracts.source import relative

TITLES: dict[Fate, str] = {
    "dropped": "Dropped: the eval files do not have these",
    "approximated": "Approximated: these mean something slightly different",
    "kept": "Kept",
}
WARNINGS = "What `validate` says; `.agentv.yaml` turns the warnings off"
UNCONFIGURED = "fails until you configure it"
KINDS_SHOWN = 10
"""Kinds of changes on the screen."""
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


def closing_lines(files: ImportedFiles, root: Path) -> Iterator[str]:
    """Yield what an import has done to cases, the most frequent kinds of changes first.

    Paths are from `root`.
    """
    cases = files.cases
    yield (
        f"{counted(cases.get('kept', 0), 'case')} run as they did, {cases.get('changed', 0)} changed, "
        f"{cases.get('skipped', 0)} skipped"
    )
    lost = [note for note in files.notes if note.fate != "kept" and UNCONFIGURED not in note.how]
    skips = [note for note in lost if note.how.endswith("skipped")]
    changes = [note for note in lost if note not in skips]
    for title, notes in (("changed or left out:", changes), ("skipped:", skips)):
        if notes:
            yield title
            yield from _kinds(notes, root)


def _kinds(notes: Sequence[ImportNote], root: Path) -> Iterator[str]:
    kinds = Counter((note.construct, note.how) for note in notes)
    places: dict[tuple[str, str], dict[str, None]] = {}
    for note in notes:
        place = f"{relative(note.path, root)}:{note.line}"
        places.setdefault((note.construct, note.how), {})[place] = None
    for (construct, how), times in kinds.most_common(KINDS_SHOWN):
        first, *others = places[construct, how]
        more = f" and {counted(len(others), 'more place')}" if others else ""
        yield f"  {times:4}  {construct}: {how} ({first}{more})"
    if len(kinds) > KINDS_SHOWN:
        yield f"        and {counted(len(kinds) - KINDS_SHOWN, 'more kind')}, in MIGRATION.md"


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
