"""Processes and what they have started: signalled as a whole, and adopted when their parents end.

Only Linux lists processes (proc(5)); elsewhere a process is signalled with its group alone.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MAX_ROUNDS = 100
"""How often is looked for processes that are left; a killed one may have started another one just before."""

ProcessId = tuple[int, int]
"""Number and start of a process: its number may be another one's when it has ended."""

_adopts = False
"""Whether this process is the parent of orphans."""


class _Process(NamedTuple):
    """A process that has not ended."""

    pid: int
    parent: int
    session: int
    started: int


def signal_group(leader: int, number: signal.Signals) -> None:
    """Signal the processes of a group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def signal_tree(leader: int, number: signal.Signals, known: frozenset[ProcessId] = frozenset()) -> frozenset[ProcessId]:
    """Signal a process with everything it started, whatever groups and sessions that has made of its own.

    `known` are signalled too, though what has started them may be gone; returns the processes that were signalled.
    """
    # Looked for first: the children of one that has ended have no parent to be found by.
    processes = _processes()
    session = [each for each in processes if each.session == leader or (each.pid, each.started) in known]
    tree = {(each.pid, each.started) for each in (*session, *_below([each.pid for each in session], processes))}
    signal_group(leader, number)
    for pid, _ in tree:
        _signal(pid, number)
    return frozenset(tree)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends, so that none gets lost; on Linux alone.

    `PR_SET_CHILD_SUBREAPER`, see prctl(2).
    """
    global _adopts  # noqa: PLW0603  # it is the process's own
    if sys.platform == "linux":
        import ctypes  # no other command needs it

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
        _adopts = True


def bury_orphans() -> None:
    """Forget the adopted processes that have ended; else they would take up numbers until this process ends.

    Those that lead a session may be commands whose end is waited for elsewhere: they are left to the end.
    """
    if not _adopts:
        return
    for listed in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError, ValueError):
            for pid in map(int, listed.read_text().split()):
                with suppress(OSError):
                    if os.getsid(pid) != pid:
                        os.waitpid(pid, os.WNOHANG)


def end_descendants() -> None:
    """Kill all that this process has started, and all that was started by it in turn; on Linux alone."""
    for _ in range(MAX_ROUNDS):
        descendants = _below([os.getpid()], _processes())
        if not descendants:
            return
        for each in descendants:
            _signal(each.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _processes() -> list[_Process]:
    """Return all processes, where the system lists them."""
    processes: list[_Process] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # The name in parentheses may hold anything.
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if len(fields) > 19 and fields[0] != b"Z":
            processes.append(_Process(int(entry.name), int(fields[1]), int(fields[3]), int(fields[19])))
    return processes


def _below(ancestors: Iterable[int], processes: Iterable[_Process]) -> list[_Process]:
    """Return the processes that others have started, and those that these have started in turn."""
    children: dict[int, list[_Process]] = {}
    for each in processes:
        children.setdefault(each.parent, []).append(each)
    descendants: list[_Process] = []
    generation = [child for pid in ancestors for child in children.get(pid, ())]
    while generation:
        descendants += generation
        generation = [child for parent in generation for child in children.get(parent.pid, ())]
    return descendants
