"""Looking at the files that a document refers to."""

from __future__ import annotations

from pathlib import Path

from agentv_ci.contracts.documents import DocumentContext, ReferencedFile
from agentv_ci.validate.findings import Finder


def look_at(reference: str, find: Finder, context: DocumentContext) -> tuple[Path, ReferencedFile]:
    """Return the path that a file reference means, and what it leads to."""
    path = find.source.resolve(reference)
    return path, look_inside(path, find, context)


def look_inside(path: Path, find: Finder, context: DocumentContext) -> ReferencedFile:
    """Return what a path leads to, if it stays inside the document's repository."""
    # A file outside of any repository may still refer to what lies beside it.
    return context.inspect_file(path, (find.source.root, find.source.path.parent))
