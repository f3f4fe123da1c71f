"""Files → load → validate: every document with its diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from msgspec import Struct

from agentv_ci.app.clean_files import CheckedFile, CleanFiles
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
    cached: bool = False,
) -> Checks:
    """Check every document that matches `patterns`, in up to `jobs` processes.

    `today` is the day on which quarantines have expired or not. With `cached`, files that were clean and are unchanged
    are not checked again. Keeps only the diagnostics in memory. Raises UsageError for a path that does not exist.
    """
    discovered = discover(patterns, cwd)
    clean = CleanFiles(cwd, targets) if cached else None
    known = {each: found for each in discovered if clean is not None and (found := clean.find(each)) is not None}
    if others := [each for each in discovered if each not in known]:
        from agentv_ci.app.check_files import check_files  # slow to import, and needless if all files are unchanged

        checked = check_files(others, targets=targets, cwd=cwd, jobs=jobs, today=today)
        known |= {each.file: each for each in checked}
        if clean is not None:
            clean.keep(checked)
    return _checks([known[each] for each in discovered])


def _checks(checked: Sequence[CheckedFile]) -> Checks:
    files = {each.result.path: each.result for each in checked if each.result is not None}
    skipped = len(checked) - len(files)
    for each in tuple(files.values()):
        for other in each.beside:
            files.setdefault(other.path, other)
    return Checks(tuple(files.values()), skipped)
