"""Files → load → validate: every document with its diagnostics."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agentv_ci.app.clean_files import CheckedFile, CleanFiles
from agentv_ci.contracts.diagnostics import FileDiagnostics
from agentv_ci.load.discover import DiscoveredFile, discover

WORTH_A_PROCESS_BYTES = 1_500_000
"""The size of files above which another process saves time."""
CHUNKS_A_PROCESS = 4
"""Small enough to keep all processes busy, large enough to send little."""


@dataclass(frozen=True, slots=True)
class Checks:
    """The diagnostics of all files."""

    files: tuple[FileDiagnostics, ...]
    skipped: int
    """YAML files that are not documents of agentv-ci."""


def check_paths(
    patterns: Sequence[str], *, targets: str | None, cwd: Path, jobs: int = 1, cached: bool = False
) -> Checks:
    """Check every document that matches `patterns`, in up to `jobs` processes.

    With `cached`, files that were clean and are unchanged are not checked again. Keeps only the diagnostics in memory.
    Raises UsageError for a path that does not exist.
    """
    discovered = discover(patterns, cwd)
    if not cached:
        return _checks(_check_all(discovered, targets, cwd, jobs))
    clean = CleanFiles(cwd, targets)
    known = {each: found for each in discovered if (found := clean.find(each)) is not None}
    checked = _check_all([each for each in discovered if each not in known], targets, cwd, jobs)
    clean.keep(checked)
    now = {each.file: each for each in checked} | known
    return _checks([now[each] for each in discovered])


def _checks(checked: Sequence[CheckedFile]) -> Checks:
    files = {each.result.path: each.result for each in checked if each.result is not None}
    skipped = len(checked) - len(files)
    for each in tuple(files.values()):
        for other in each.beside:
            files.setdefault(other.path, other)
    return Checks(tuple(files.values()), skipped)


def _check_all(
    discovered: Sequence[DiscoveredFile], targets: str | None, cwd: Path, jobs: int
) -> Sequence[CheckedFile]:
    if not discovered:
        return ()
    processes = min(jobs, len(discovered), _size_bytes(discovered) // WORTH_A_PROCESS_BYTES + 1) if jobs > 1 else 1
    if processes == 1:
        return _check(discovered, targets, cwd)
    return _check_in_processes(discovered, targets, cwd, processes)


def _size_bytes(discovered: Sequence[DiscoveredFile]) -> int:
    sizes = 0
    for each in discovered:
        with suppress(OSError, ValueError):  # reading it says why
            sizes += each.path.stat().st_size
    return sizes


def _check(discovered: Sequence[DiscoveredFile], targets: str | None, cwd: Path) -> list[CheckedFile]:
    from agentv_ci.app.workspace import Documents  # slow to import, and needless if all files are unchanged

    documents = Documents(cwd, targets)
    return [documents.check_file(each) for each in discovered]


def _check_in_processes(
    discovered: Sequence[DiscoveredFile], targets: str | None, cwd: Path, processes: int
) -> list[CheckedFile]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from agentv_ci.contracts.evals import EvalDocument
    from agentv_ci.contracts.targets import TargetsDocument

    for contract in (EvalDocument, TargetsDocument):
        # Built before the fork, they are shared by all processes.
        contract.model_rebuild()
    size = -(-len(discovered) // (processes * CHUNKS_A_PROCESS))
    chunks = [discovered[start : start + size] for start in range(0, len(discovered), size)]
    pool = ProcessPoolExecutor(processes, get_context(start_method()), initializer=_leave_interrupts_to_the_parent)
    try:
        parts = pool.map(_check, chunks, [targets] * len(chunks), [cwd] * len(chunks))
        return [each for part in parts for each in part]
    finally:
        pool.shutdown(cancel_futures=True)


def start_method() -> str:
    """Return how to start processes: forking needs no imports, but is safe only on Linux."""
    return "fork" if sys.platform == "linux" else "spawn"


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
