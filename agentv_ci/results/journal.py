"""The results file while a run goes on: one writer, every row at once, on the disk a moment later."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import UsageError

SYNC_INTERVAL_S = 0.2
COPIED_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class KeptRows:
    """What an earlier run left in a file that is there."""

    path: Path
    whole_bytes: int
    """How many of its first bytes are rows that stay for now."""
    size: int
    """How long it was when it was read."""


class Journal:
    """Appends rows. When one cannot be written, `write_error` says why, and the others are written all the same."""

    def __init__(
        self,
        path: Path,
        encode: Callable[[ResultRow], str],
        *,
        keeps: KeptRows | None = None,
        outdates: Path | None = None,
    ) -> None:
        """Append to a file.

        `keeps`: what the results begin with. `outdates`: what speaks of the file as it is, and is removed when that
        changes.
        """
        self.path = path
        self.write_error: str | None = None
        """The first thing that went wrong."""
        self._encode = encode
        self._keeps = keeps
        self._outdates = outdates
        self._file: BinaryIO
        self._kept: BinaryIO | None = None
        """What is copied, where it is another file: open, so that it stays when its name is removed."""
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
        self._file = claim(self.path)
        try:
            if self._keeps is not None:
                self._open_kept(self._keeps)
        except BaseException:
            self._close()
            raise
        return self

    def _open_kept(self, keeps: KeptRows) -> None:
        if not keeps.path.samefile(self.path):
            self._kept = keeps.path.open("rb")
        if os.fstat((self._kept or self._file).fileno()).st_size != keeps.size:
            raise UsageError(f"'{keeps.path}' changed while it was read", hint="try again when no other run writes it")

    def _close(self) -> None:
        if self._is_new and not self.has_begun:
            # Nothing came of the run: an empty file would look like one that was killed.
            with contextlib.suppress(OSError):
                self.path.unlink()
        self._file.close()
        if self._kept is not None:
            self._kept.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pending_sync is not None:
            self._pending_sync.cancel()
        self._disk.shutdown()
        self._sync(self._file.fileno())
        self._close()

    def append(self, row: ResultRow) -> None:
        """Write a row now and have it on the disk within 200 ms."""
        try:
            self.begin()
            self._write(self._encode(row).encode("utf-8", "replace"))
        except OSError as error:
            self._note_error(self.path, error)
            return
        if self._pending_sync is None:
            self._pending_sync = asyncio.get_running_loop().call_later(SYNC_INTERVAL_S, self._sync_soon)

    def finish(self) -> None:
        """Leave a file of this run, also when it had no row."""
        try:
            self.begin()
        except OSError as error:
            self._note_error(self.path, error)

    def _note_error(self, path: Path, error: OSError) -> None:
        self.write_error = self.write_error or f"{path}: {error.strerror}"

    def begin(self) -> None:
        """Drop what is in the file and does not stay; raises OSError."""
        if self.has_begun:
            return
        file, whole_bytes = self._file, self._keeps.whole_bytes if self._keeps is not None else 0
        there = os.fstat(file.fileno()).st_size
        size = self._copy(whole_bytes) if self._kept is not None else min(whole_bytes, there)
        file.truncate(size)
        file.seek(size)
        # Other programs leave the last line break out.
        if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
            self._write(b"\n")
        self.has_begun = True
        if self._keeps is not None and size < whole_bytes:
            gone = f"{self._keeps.path}: somebody changed it; rows that were to be kept are gone"
            self.write_error = self.write_error or gone
        if self._outdates is not None:
            try:
                self._outdates.unlink(missing_ok=True)
            except OSError as error:
                self._note_error(self._outdates, error)

    def _copy(self, most_bytes: int) -> int:
        """Begin with what is kept of another file; returns how much of it was there."""
        assert self._kept is not None
        self._file.truncate(0)
        self._kept.seek(0)
        size = 0
        while size < most_bytes and (piece := self._kept.read(min(most_bytes - size, COPIED_BYTES))):
            self._write(piece)
            size += len(piece)
        return size

    def _write(self, data: bytes) -> None:
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
        self._disk.submit(self._sync, self._file.fileno())

    def _sync(self, file: int) -> None:
        try:
            os.fsync(file)
        except OSError as error:
            self._note_error(self.path, error)


def claim(path: Path) -> BinaryIO:
    """Return a file opened for appending that no other run may claim until it is closed.

    Raises OSError, and UsageError while another run writes it. On file systems without locks, every run may.
    """
    while True:
        file = path.open("a+b", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise UsageError(f"another run writes '{path}'", hint="give --out another file") from error
        except OSError:
            return file
        # The run that had it before may have removed it, or put another one in its place.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()
