"""The results file while a run goes on: one writer, every row at once, on the disk a moment later."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from agentv_ci.contracts.results import ResultRow

SYNC_INTERVAL_S = 0.2


class Journal:
    """Appends rows. A row that cannot be written is counted, and the others are written all the same."""

    def __init__(self, path: Path, encode: Callable[[ResultRow], str]) -> None:
        self.path = path
        self.write_error: str | None = None
        """The first thing that went wrong."""
        self._encode = encode
        self._file: BinaryIO | None = None
        self._begun = False
        self._pending_sync: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        """Open the file; raises OSError. What is in it stays until the first row, in case there is none."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("ab", buffering=0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pending_sync is not None:
            self._pending_sync.cancel()
        self._sync()
        assert self._file is not None
        self._file.close()

    def append(self, row: ResultRow) -> None:
        """Write a row now and have it on the disk within 200 ms."""
        assert self._file is not None
        try:
            if not self._begun:
                self._file.truncate(0)
                self._file.seek(0)
                self._begun = True
            self._write(self._encode(row).encode("utf-8", "replace"))
        except OSError as error:
            self.write_error = self.write_error or f"{self.path}: {error.strerror}"
            return
        if self._pending_sync is None:
            self._pending_sync = asyncio.get_running_loop().call_later(SYNC_INTERVAL_S, self._sync)

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

    def _sync(self) -> None:
        self._pending_sync = None
        assert self._file is not None
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            self.write_error = self.write_error or f"{self.path}: {error.strerror}"
