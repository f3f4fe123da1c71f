"""The writer of a results file during a run: rows are written immediately and synced soon after."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from msgspec import Struct

from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import UsageError

SYNC_INTERVAL_S = 0.2
COPIED_BYTES = 1024 * 1024


class KeptRows(Struct, frozen=True):
    """The part of an existing file that a run keeps."""

    path: Path
    whole_bytes: int
    """Length of the rows at its beginning that are kept."""
    size: int
    """Its size when it was read."""


class Journal:
    """Appends rows.

    When one cannot be written, `write_error` has the reason, and later rows are still written.
    """

    def __init__(
        self,
        path: Path,
        encode: Callable[[ResultRow], str],
        *,
        keeps: KeptRows | None = None,
        outdates: Path | None = None,
        on_begin: Callable[[], None] = lambda: None,
    ) -> None:
        """Append to a file.

        `keeps`: the rows that the results begin with. `outdates`: a file that describes the
        results, which is removed when they change. `on_begin` is called once the file is the run's.
        """
        self.path = path
        self.write_error: str | None = None
        """The first write error."""
        self._encode = encode
        self._keeps = keeps
        self._outdates = outdates
        self._on_begin = on_begin
        self._file: BinaryIO
        self._kept: BinaryIO | None = None
        """Another file whose rows are kept: open, so that it can be copied even after it is
        removed.
        """
        self._is_new = False
        self.has_begun = False
        """Whether this run has written to the file."""
        self._pending_sync: asyncio.TimerHandle | None = None
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")

    def __enter__(self) -> Self:
        """Open the file; raises OSError, and UsageError while another run is writing it.

        Its content stays until the first row.
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
            raise UsageError(
                f"'{keeps.path}' changed while it was read",
                hint="wait until no other run writes it",
            )

    def _close(self) -> None:
        if self._is_new and not self.has_begun:
            # Without a row, an empty file would look like a killed run.
            with contextlib.suppress(OSError):
                self.path.unlink()
        self._file.close()
        if self._kept is not None:
            self._kept.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pending_sync is not None:
            self._pending_sync.cancel()
        self._disk.shutdown()
        self._sync(self._file.fileno())
        self._close()

    def append(self, row: ResultRow) -> None:
        """Write a row now, and sync it to disk within 200 ms."""
        try:
            self.begin()
            self._write(self._encode(row).encode("utf-8", "replace"))
        except OSError as error:
            self._note_error(self.path, error)
            return
        if self._pending_sync is None:
            self._pending_sync = asyncio.get_running_loop().call_later(
                SYNC_INTERVAL_S, self._sync_soon
            )

    def finish(self) -> None:
        """Make sure that this run has written the file, also without rows."""
        try:
            self.begin()
        except OSError as error:
            self._note_error(self.path, error)

    def _note_error(self, path: Path, error: OSError) -> None:
        self.write_error = self.write_error or f"{path}: {error.strerror}"

    def begin(self) -> None:
        """Truncate the file to the rows that are kept; raises OSError."""
        if self.has_begun:
            return
        file, whole_bytes = self._file, self._keeps.whole_bytes if self._keeps is not None else 0
        there = os.fstat(file.fileno()).st_size
        size = self._copy(whole_bytes) if self._kept is not None else min(whole_bytes, there)
        file.truncate(size)
        file.seek(size)
        # Other programs may omit the last line break.
        if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
            self._write(b"\n")
        self.has_begun = True
        self._on_begin()
        if self._keeps is not None and size < whole_bytes:
            gone = f"{self._keeps.path}: changed by another program; rows to keep are lost"
            self.write_error = self.write_error or gone
        if self._outdates is not None:
            try:
                self._outdates.unlink(missing_ok=True)
            except OSError as error:
                self._note_error(self._outdates, error)

    def _copy(self, most_bytes: int) -> int:
        """Copy the rows that are kept from another file; returns how many bytes were found."""
        assert self._kept is not None
        self._file.truncate(0)
        self._kept.seek(0)
        size = 0
        while size < most_bytes and (
            piece := self._kept.read(min(most_bytes - size, COPIED_BYTES))
        ):
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
            # A partial row would make the file unreadable.
            self._file.truncate(start)
            self._file.seek(start)
            raise

    def _sync_soon(self) -> None:
        # In a thread: a slow disk must not delay answers or add to their measured time.
        self._pending_sync = None
        self._disk.submit(self._sync, self._file.fileno())

    def _sync(self, file: int) -> None:
        try:
            os.fsync(file)
        except OSError as error:
            self._note_error(self.path, error)


def claim(path: Path) -> BinaryIO:
    """Open a file for appending, locked until it is closed.

    Raises OSError, and UsageError while another run is writing it. File systems without locks do
    not prevent that.
    """
    while True:
        file = path.open("a+b", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise UsageError(
                f"another run is writing '{path}'", hint="set --out to another file"
            ) from error
        except OSError:
            return file
        # The previous run may have removed or replaced the file.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()
