"""What became of processes."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

ORDINARY = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs") if os.geteuid() == 0 else ()
"""What starts a command as an ordinary user: without the capabilities of root, for whom modes of files mean nothing."""


def state_of(pid: int) -> str:
    """Return the state of a process, such as `S`; empty if there is none."""
    return _alive_or_dead().get(pid, ("", ""))[0]


def commands() -> dict[int, str]:
    """Return the command lines of the processes that are alive, by their ids."""
    return {pid: command for pid, (state, command) in _alive_or_dead().items() if state != "Z"}


def _alive_or_dead() -> dict[int, tuple[str, str]]:
    """Return state and command line of each process: from /proc, since containers may lack `ps`."""
    if not Path("/proc/self").exists():
        listed = subprocess.run(["ps", "-axo", "pid=,stat=,args="], capture_output=True, text=True, check=True).stdout
        rows = (line.split(maxsplit=2) for line in listed.splitlines())
        return {int(pid): (state[0], "".join(command)) for pid, state, *command in rows}
    found: dict[int, tuple[str, str]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                state = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
                words = (folder / "cmdline").read_bytes().decode("utf-8", "replace")
                found[int(folder.name)] = state, words.replace("\0", " ").strip()
    return found


def has_ended(pid: int) -> bool:
    """Whether a process ends within moments; one whose parent has not waited for it counts as ended."""
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        if state_of(pid) in ("", "Z"):
            return True
        time.sleep(0.02)
    return False
