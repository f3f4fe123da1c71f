"""Tell whether files have changed, without reading them, even if someone tries to hide it.

Only the kernel sets the inode of a file and the time of its last change (stat(2), `st_ctime`); only
root can set the clock. Imports nothing but the standard library: the action's installer uses it
before anything is installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

State = tuple[int, int, int]
"""Mode, inode and time of change; of folders only the mode: their entries are listed themselves."""


def file_states(
    roots: Iterable[Path], *, without: frozenset[str] = frozenset()
) -> dict[str, State]:
    """Return the state of files and of everything in folders.

    What is directly below them with one of the names `without` is left out.
    """
    states: dict[str, State] = {}
    for root in roots:
        for folder, folders, files in _walked(root):
            if folder == str(root):
                folders[:] = [name for name in folders if name not in without]
            for name in (*files, *folders):
                path = os.path.join(folder, name)  # noqa: PTH118  # for thousands of files
                with suppress(OSError):
                    states[path] = _state(path, is_file=name in files)
    return states


def _state(path: str, *, is_file: bool) -> State:
    status = os.lstat(path)
    if is_file:
        return status.st_mode, status.st_ino, status.st_ctime_ns
    return status.st_mode, 0, 0


def _walked(root: Path) -> Iterable[tuple[str, list[str], list[str]]]:
    """Return what `os.walk` does of a folder; a file is alone in its own."""
    if root.is_dir():
        return os.walk(root)
    return [(str(root.parent), [], [root.name])]
