"""The kernel's keys (keyrings(7)), which namespaces do not separate.

A command in them inherits its session's.
"""

from __future__ import annotations

import os
import sys

KEYCTL = {"x86_64": 250, "aarch64": 219}
"""Architecture → number of the system call (syscalls(2)), which the C library does not have."""
JOIN_SESSION_KEYRING = 1


def leave_session_keyring() -> None:
    """Give this thread a new session keyring without keys (keyctl(2)).

    What the thread starts from now on inherits it.
    """
    number = KEYCTL.get(os.uname().machine) if sys.platform == "linux" else None
    if number is not None:
        import ctypes  # only isolation needs it

        ctypes.CDLL(None).syscall(number, JOIN_SESSION_KEYRING, None)
