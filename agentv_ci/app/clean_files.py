"""Files that had no diagnostics when they were last checked, and have not changed since.

A file is unchanged if everything that its check has read has the same inode, size and time of change (`st_ctime`), and
what it has looked for in vain is still missing. Only the kernel sets these: a cache that is copied or committed never
matches. Imports no contracts, so that a check of unchanged files does not wait for them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR
from typing import Any

from msgspec import Struct, field

import agentv_ci
from agentv_ci.atomic import keep_out_of_git, replacing
from agentv_ci.contracts.diagnostics import FileDiagnostics
from agentv_ci.load.discover import DiscoveredFile, find_root

CACHE = Path(".agentv", "cache")
"""The folder of caches, in the repository."""
SETTLED_NS = 1_000_000_000
"""Age of a change from which on a file is remembered: another one in the same tick of the clock would be invisible."""

State = list[int] | None
"""Inode, size and time of change in nanoseconds, of a folder only the inode; None if there is no such file."""


class CheckedFile(Struct, frozen=True):
    """A file that was found, and what its check has returned."""

    file: DiscoveredFile
    result: FileDiagnostics | None
    """None for a YAML file that is not a document of agentv-ci."""
    needs: tuple[str, ...] = ()
    """The paths that the result depends on, whether they exist or not; empty: on more than files."""

    @property
    def is_clean(self) -> bool:
        """Whether there are no diagnostics, neither of it nor of the files that it is checked with."""
        return self.result is None or not (self.result.diagnostics or self.result.beside)


class _Contents(Struct):
    """The cache in memory."""

    version: str
    states: dict[str, State] = field(default_factory=dict)
    """State of every path when it was last read."""
    files: dict[str, list[Any]] = field(default_factory=dict)
    """Path → whether it was named, its repository, its kind, whether it has no targets, and what it needs."""


class CleanFiles:
    """The cache of a working directory and a targets option. One that cannot be read or written is ignored."""

    def __init__(self, cwd: Path, targets: str | None) -> None:
        self._begun_ns = time.time_ns()
        self._place = find_root(cwd / "any", cwd) / CACHE / "validate.json"
        self._now: dict[str, State] = {}
        version = json.dumps([str(cwd), targets, sys.version, list(_code())])
        self._contents = _Contents(version)
        with suppress(OSError, ValueError, TypeError):
            read = _Contents(**json.loads(self._place.read_bytes()))
            if read.version == version:
                self._contents = read

    def find(self, file: DiscoveredFile) -> CheckedFile | None:
        """Return the result of the last check if the file was clean and is unchanged."""
        entry = self._contents.files.get(str(file.path))
        if entry is None or entry[0] != file.named or not all(map(self._is_unchanged, entry[4])):
            return None
        _, root, kind, without_targets, needs = entry
        result = (
            FileDiagnostics(file.path, Path(root), kind, (), without_targets=without_targets)
            if root is not None
            else None
        )
        return CheckedFile(file, result, tuple(needs))

    def _is_unchanged(self, path: str) -> bool:
        return path in self._contents.states and self._state(path) == self._contents.states[path]

    def _state(self, path: str) -> State:
        if path not in self._now:
            self._now[path] = _state(path)
        return self._now[path]

    def keep(self, checked: Iterable[CheckedFile]) -> None:
        """Remember the clean ones of files that were just checked."""
        clean = [each for each in checked if each.is_clean and each.needs and all(map(self._is_settled, each.needs))]
        for each in clean:
            facts: tuple[object, ...] = (None, None, False)
            if each.result is not None:
                facts = (str(each.result.root), each.result.kind, each.result.without_targets)
            self._contents.files[str(each.file.path)] = [each.file.named, *facts, each.needs]
            self._contents.states.update((path, self._state(path)) for path in each.needs)
        if clean:
            with suppress(OSError):
                self._write()

    def _is_settled(self, path: str) -> bool:
        state = self._state(path)
        return state is None or state[2] < self._begun_ns - SETTLED_NS

    def _write(self) -> None:
        keep_out_of_git(self._place.parent)
        with replacing(self._place) as file:
            known = self._contents
            entry = {"version": known.version, "states": known.states, "files": known.files}
            file.write(json.dumps(entry).encode("ascii"))


def _state(path: str) -> State:
    try:
        found = os.stat(path)  # noqa: PTH116  # for thousands of files
    except (OSError, ValueError):
        return None
    return [found.st_ino, 0, 0] if S_ISDIR(found.st_mode) else [found.st_ino, found.st_size, found.st_ctime_ns]


def _code() -> Iterator[object]:
    """Yield the states of this package's files and of the folders of packages, which change with each installation."""
    for folder, _, files in os.walk(Path(agentv_ci.__file__).parent):
        yield from (_state(f"{folder}/{name}") for name in files if name.endswith(".py"))
    for path in sys.path:
        if path.endswith("-packages") and os.path.isdir(path):  # noqa: PTH112
            yield path, os.stat(path).st_ctime_ns  # noqa: PTH116
