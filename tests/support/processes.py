"""What became of processes."""

from __future__ import annotations

import os
import subprocess
import time

ORDINARY = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs") if os.geteuid() == 0 else ()
"""What starts a command as an ordinary user: without the capabilities of root, for whom modes of files mean nothing."""


def has_ended(pid: int) -> bool:
    """Whether a process ends within moments; one whose parent has not waited for it counts as ended."""
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
        if not state.stdout.strip() or state.stdout.startswith("Z"):
            return True
        time.sleep(0.02)
    return False
