"""Watch what the processes of a trial use together, and what they write."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from agentv_ci.base.process import Watch, usage_of
from agentv_ci.contracts.workspaces import WorkspaceLimits

INTERVAL_S = 0.1
MIB = 1024 * 1024


def watch(limits: WorkspaceLimits, folders: Sequence[Path]) -> Watch:
    """Return what watches a process with all it has started.

    The watch returns the limit that they exceed.
    """

    async def exceeded(pid: int) -> str:
        used_cpu_s = 0.0
        while True:
            await asyncio.sleep(INTERVAL_S)
            used = usage_of(pid)
            # What has ended without being waited for is no longer counted.
            used_cpu_s = max(used_cpu_s, used.cpu_s)
            if limits.processes is not None and used.processes > limits.processes + OWN:
                return f"exceeded the limit of {limits.processes} processes"
            if limits.cpu_s is not None and used_cpu_s > limits.cpu_s:
                return f"exceeded the limit of {limits.cpu_s:g} s of processor time"
            if limits.memory_mb is not None and used.memory_bytes > limits.memory_mb * MIB:
                return f"exceeded the limit of {limits.memory_mb:g} MiB of memory"
            if limits.disk_mb is not None:
                written = await asyncio.to_thread(_size, folders)
                if written > limits.disk_mb * MIB:
                    return f"exceeded the limit of {limits.disk_mb:g} MiB on disk"

    return exceeded


OWN = 3
"""Processes that confine the command: bubblewrap, its init, and a shell."""


def _size(folders: Sequence[Path]) -> int:
    """Return the bytes that files take on disk."""
    total = 0
    for each in folders:
        for folder, _, names in os.walk(each):
            for name in names:
                try:
                    total += os.lstat(f"{folder}/{name}").st_blocks * 512
                except OSError:
                    continue
    return total
