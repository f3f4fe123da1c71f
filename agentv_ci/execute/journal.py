"""The results file while a run goes on: one writer, every row at once, on the disk a moment later."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import UsageError

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
        self._kept: BinaryIO | None = None
        """What is copied, where it is another file: open, so that it stays whoever removes it."""
        self._is_new = False
        self.has_begun = False
        """Whether the file is this run's by now."""
        self._pending_sync: asyncio.TimerHandle | None = None
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")

    def __enter__(self) -> Self:
        """Open the file; raises OSError, and UsageError while another run writes it.

        What is in it stays until the first row, in case there is none.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._is_new = not self.path.exists()
        with contextlib.ExitStack() as opened:
            file = opened.enter_context(self.path.open("ab", buffering=0))
            self._refuse_others(file)
            if self._keeps is not None and not self._keeps[0].samefile(self.path):
                self._kept = opened.enter_context(self._keeps[0].open("rb"))
            self._file = file
            opened.pop_all()
        return self

    def _refuse_others(self, file: BinaryIO) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"another run writes '{self.path}'", hint="give --out another file") from error
        except OSError as error:
            # Not every file system knows locks.
            if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise

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
        if self._kept is not None:
            self._kept.close()

    def append(self, row: ResultRow) -> None:
        """Write a row now and have it on the disk within 200 ms."""
        assert self._file is not None
        try:
            self.begin()
            self._write(self._encode(row).encode("utf-8", "replace"))
        except OSError as error:
            self._tell(self.path, error)
            return
        if self._pending_sync is None:
            self._pending_sync = asyncio.get_running_loop().call_later(SYNC_INTERVAL_S, self._sync_soon)

    def finish(self) -> None:
        """Leave a file of this run, also when it had no row."""
        try:
            self.begin()
        except OSError as error:
            self._tell(self.path, error)

    def _tell(self, path: Path, error: OSError) -> None:
        self.write_error = self.write_error or f"{path}: {error.strerror}"

    def begin(self) -> None:
        """Drop what is in the file and does not stay; raises OSError."""
        if self.has_begun:
            return
        assert self._file is not None
        earlier, whole_bytes = self._keeps or (self.path, 0)
        there = os.fstat(self._file.fileno()).st_size
        size = self._copy(whole_bytes) if self._kept is not None else min(whole_bytes, there)
        self._file.truncate(size)
        self._file.seek(size)
        if size and not _ends_its_line(self.path, size):
            self._write(b"\n")
        self.has_begun = True
        if size < whole_bytes:
            self.write_error = self.write_error or f"{earlier}: somebody changed it; rows that were to be kept are gone"
        if self._outdates is not None:
            try:
                self._outdates.unlink(missing_ok=True)
            except OSError as error:
                self._tell(self._outdates, error)

    def _copy(self, most_bytes: int) -> int:
        """Begin with what is kept of another file; returns how much of it was there."""
        assert self._file is not None
        assert self._kept is not None
        self._file.truncate(0)
        self._kept.seek(0)
        size = 0
        while size < most_bytes and (piece := self._kept.read(min(most_bytes - size, COPIED_BYTES))):
            self._write(piece)
            size += len(piece)
        return size

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
            self._tell(self.path, error)


def _ends_its_line(path: Path, size: int) -> bool:
    """Whether a file of that size ends with a line break; other programs leave it out."""
    with path.open("rb") as file:
        file.seek(size - 1)
        return file.read(1) == b"\n"
