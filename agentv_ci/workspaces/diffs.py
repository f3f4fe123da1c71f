"""Changes as a unified diff, for people to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from agentv_ci.base.text import well_formed_text
from agentv_ci.contracts.results import Change
from agentv_ci.workspaces.bases import Base
from agentv_ci.workspaces.trees import content_of

MAX_COMPARED = 500_000
"""Bytes of a file from which on its lines are not compared."""
NO_NEWLINE = "\\ No newline at end of file\n"


class FileDiff(Struct, frozen=True):
    """The diff of one file, and how many lines it adds and removes; of a binary file none."""

    path: str
    text: str
    lines: int


def diff_of(changes: Iterable[Change], base: Base) -> Iterator[FileDiff]:
    """Yield the diff of each change against its base; raises OSError."""
    for change in changes:
        yield _file_diff(change, base)


def _file_diff(change: Change, base: Base) -> FileDiff:
    path = well_formed_text(change.path)
    if change.link is not None:
        return FileDiff(
            path, f"--- {path}: {change.kind}, a link to {well_formed_text(change.link)}\n", 1
        )
    before = None if change.kind == "added" else _before(base, change.path)
    after = content_of(change)
    old, new = _lines(before), _lines(after)
    if old is None or new is None:
        return FileDiff(path, f"--- {path}: {change.kind}, binary or large\n", 0)
    names = (
        "/dev/null" if change.kind == "added" else f"a/{path}",
        f"b/{path}" if after is not None else "/dev/null",
    )
    from difflib import unified_diff  # slow to import, and few rows have a diff

    compared = [*unified_diff(old, new, *names)]
    lines = sum(line[0] in "+-" for line in compared[2:])
    mode = ""
    was = base.entries.get(change.path)
    if change.kind == "modified" and was is not None and was.mode != change.mode:
        mode = f"--- {path}: mode {was.mode:o} to {change.mode:o}\n"
    text = "".join(line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}" for line in compared)
    return FileDiff(path, mode + text or f"--- {path}: {change.kind}, empty\n", lines)


def _before(base: Base, path: str) -> bytes | None:
    # A recorded change need not be of this base.
    known = base.entries.get(path)
    if known is not None and known.link is None:
        return (base.folder / path).read_bytes()
    return None


def _lines(content: bytes | None) -> list[str] | None:
    """Return the lines of a text; None for what is none."""
    if content is None:
        return []
    if b"\0" in content or len(content) > MAX_COMPARED:
        return None
    return content.decode("utf-8", "replace").splitlines(keepends=True)
