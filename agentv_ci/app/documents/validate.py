"""Files → load → validate: every document with its diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from msgspec import Struct

from agentv_ci.app.documents.check_files import check_files
from agentv_ci.contracts.diagnostics import FileDiagnostics
from agentv_ci.load.discover import discover


class Checks(Struct, frozen=True):
    """The diagnostics of all files."""

    files: tuple[FileDiagnostics, ...]
    skipped: int
    """YAML files that are not documents of agentv-ci."""


def check_paths(
    patterns: Sequence[str],
    *,
    targets: str | None,
    cwd: Path,
    today: date | None = None,
    jobs: int = 1,
) -> Checks:
    """Check every document that matches `patterns`, in up to `jobs` processes.

    `today` is the day on which quarantines have expired or not. Keeps only the diagnostics in
    memory. Raises UsageError for a path that does not exist.
    """
    discovered = discover(patterns, cwd)
    if not discovered:
        return Checks((), 0)
    checked = check_files(discovered, targets=targets, cwd=cwd, jobs=jobs, today=today)
    files = {file.path: file for file in checked if file is not None}
    skipped = len(checked) - len(files)
    for file in tuple(files.values()):
        for other in file.beside:
            files.setdefault(other.path, other)
    return Checks(tuple(files.values()), skipped)
