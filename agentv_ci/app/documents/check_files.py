"""Check files, in as many processes as save time."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from itertools import chain, repeat
from pathlib import Path

from agentv_ci.app.documents.documents import Documents
from agentv_ci.contracts.diagnostics import FileDiagnostics
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.targets import TargetsDocument
from agentv_ci.load.discover import DiscoveredFile

WORTH_A_PROCESS_BYTES = 1_500_000
"""The size of files above which another process saves time."""
SIZED_FILES = 50
"""Files, spread evenly, whose size is asked for."""
CHUNKS_A_PROCESS = 4
"""Small enough to keep all processes busy, large enough to send little."""


def check_files(
    discovered: Sequence[DiscoveredFile],
    *,
    targets: str | None,
    cwd: Path,
    jobs: int,
    today: date | None,
) -> Sequence[FileDiagnostics | None]:
    """Return the diagnostics of at least one file, checked in up to `jobs` processes.

    None: not a document.
    """
    processes = 1
    if jobs > 1:
        worth_it = _size_bytes(discovered) // WORTH_A_PROCESS_BYTES + 1
        processes = min(jobs, len(discovered), worth_it)
    if processes == 1:
        return _check(discovered, targets, cwd, today)
    return _check_in_processes(discovered, targets, cwd, today, processes)


def _size_bytes(discovered: Sequence[DiscoveredFile]) -> int:
    """Return the size of all files, estimated from some of them.

    Asking for each takes a hundredth of a check.
    """
    some = discovered[:: len(discovered) // SIZED_FILES + 1]
    size_bytes = 0
    for each in some:
        with suppress(OSError, ValueError):  # reading it says why
            size_bytes += each.path.stat().st_size
    return size_bytes * len(discovered) // len(some)


def _check(
    discovered: Sequence[DiscoveredFile], targets: str | None, cwd: Path, today: date | None
) -> list[FileDiagnostics | None]:
    documents = Documents(cwd, targets, today=today)
    return list(map(documents.diagnostics, discovered))


def _check_in_processes(
    discovered: Sequence[DiscoveredFile],
    targets: str | None,
    cwd: Path,
    today: date | None,
    processes: int,
) -> list[FileDiagnostics | None]:
    # Only large sets of files need it.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    for contract in (EvalDocument, TargetsDocument):
        # Built before the fork, they are shared by all processes.
        contract.model_rebuild()
    size = -(-len(discovered) // (processes * CHUNKS_A_PROCESS))
    chunks = [discovered[start : start + size] for start in range(0, len(discovered), size)]
    pool = ProcessPoolExecutor(
        processes, get_context(start_method()), initializer=_leave_interrupts_to_the_parent
    )
    try:
        parts = pool.map(_check, chunks, repeat(targets), repeat(cwd), repeat(today))
        return list(chain.from_iterable(parts))
    finally:
        pool.shutdown(cancel_futures=True)


def start_method() -> str:
    """Return how to start processes: forking needs no imports, but is safe only on Linux."""
    return "fork" if sys.platform == "linux" else "spawn"


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
