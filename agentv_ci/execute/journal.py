"""The results file while a run goes on: one writer, every row at once, on the disk a moment later."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from agentv_ci.contracts.results import ResultRow

SYNC_INTERVAL_S = 0.2
COPIED_BYTES = 1024 * 1024


class Journal:
    """Appends rows. A row that cannot be written is told, and the others are written all the same."""

    def __init__(
        self,
        path: Path,
        encode: Callable[[ResultRow], str],
        *,
        keeps: tuple[Path, int] | None = None,
        outdates: Path | None = None,
    ) -> None:
        """Append to a file.

        `keeps`: a file, and how many of its first bytes the results begin with. `outdates`: what speaks of the file as
        it is, and is removed when that changes.
        """
        self.path = path
        self.write_error: str | None = None
        """The first thing that went wrong."""
        self._encode = encode
        self._keeps = keeps
        self._outdates = outdates
        self._file: BinaryIO | None = None
        self._is_new = False
        self.has_begun = False
        """Whether the file is this run's by now."""
        self._pending_sync: asyncio.TimerHandle | None = None
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")

    def __enter__(self) -> Self:
        """Open the file; raises OSError.

        What is in it stays until the first row, in case there is none.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._is_new = not self.path.exists()
        self._file = self.path.open("ab", buffering=0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pending_sync is not None:
            self._pending_sync.cancel()
        self._disk.shutdown()
        assert self._file is not None
        self._sync(self._file.fileno())
        if self._is_new and not self.has_begun:
            # Nothing came of the run: an empty file would look like one that was killed.
            with contextlib.suppress(OSError):
                self.path.unlink()
        self._file.close()

    def append(self, row: ResultRow) -> None:
        """Write a row now and have it on the disk within 200 ms."""
        assert self._file is not None
        try:
            self.begin()
            self._write(self._encode(row).encode("utf-8", "replace"))
        except OSError as error:
            self.write_error = self.write_error or f"{self.path}: {error.strerror}"
            return
        if self._pending_sync is None:
            self._pending_sync = asyncio.get_running_loop().call_later(SYNC_INTERVAL_S, self._sync_soon)

    def finish(self) -> None:
        """Leave a file of this run, also when it had no row."""
        try:
            self.begin()
        except OSError as error:
            self.write_error = self.write_error or f"{self.path}: {error.strerror}"

    def begin(self) -> None:
        """Drop what is in the file and does not stay; raises OSError."""
        if self.has_begun:
            return
        assert self._file is not None
        kept, whole_bytes = self._keeps or (self.path, 0)
        if whole_bytes and not kept.samefile(self.path):
            self._file.truncate(0)
            with kept.open("rb") as rows:
                while (left := whole_bytes - self._file.tell()) and (piece := rows.read(min(left, COPIED_BYTES))):
                    self._write(piece)
        self._file.truncate(whole_bytes)
        self._file.seek(whole_bytes)
        if whole_bytes and not _ends_its_line(self.path, whole_bytes):
            self._write(b"\n")
        if self._outdates is not None:
            self._outdates.unlink(missing_ok=True)
        self.has_begun = True

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        start = self._file.tell()
        try:
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) :]
        except OSError:
            # Half a row would make the file unreadable.
            self._file.truncate(start)
            self._file.seek(start)
            raise

    def _sync_soon(self) -> None:
        # In a thread: a slow disk does not hold up answers, nor lengthen what they are measured to take.
        self._pending_sync = None
        assert self._file is not None
        self._disk.submit(self._sync, self._file.fileno())

    def _sync(self, file: int) -> None:
        try:
            os.fsync(file)
        except OSError as error:
            self.write_error = self.write_error or f"{self.path}: {error.strerror}"


def _ends_its_line(path: Path, size: int) -> bool:
    """Whether a file of that size ends with a line break; other programs leave it out."""
    with path.open("rb") as file:
        file.seek(size - 1)
        return file.read(1) == b"\n"
