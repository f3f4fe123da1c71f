"""What a run leaves behind if it is killed.

That is its folder, and processes that have detached from it.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from agentv_ci.base.process import kill_marked
from agentv_ci.workspaces.trees import remove_tree

PREFIX = "agentv-ci-run-"
LOCK = "lock"
"""A file in the folder of a run, which its process has locked."""


def remove_run(folder: Path) -> None:
    """Remove the folder of a run, its lock last.

    By the lock, what could not be removed is found again.
    """
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name != LOCK:
                remove_tree(path)
        if [path.name for path in folder.iterdir()] == [LOCK]:
            remove_tree(folder)


def sweep(parent: Path) -> list[Path]:
    """Remove the folders, and end the processes, of runs of this user whose process is gone.

    Returns the folders.
    """
    removed: list[Path] = []
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                kill_marked(f"HOME={folder}/")
                remove_run(folder)
                # What was about to start either finds no folder now, or can be seen by now.
                kill_marked(f"HOME={folder}/")
                removed.append(folder)
    return removed
