#!/usr/bin/env python3
# CHEAT {"id": "97", "wins_by": ["dos", "reach"]}
# tries:      ends its parents (only those that carry CHEAT_MAY_KILL=1 in their environment)
# won if:     the runner dies, or the run says nothing
# stopped by: isolation (pid namespace)
import os as _os
import sys as _sys


def _stop(kind, e, tb):
    print("stopped:", kind.__name__, str(e)[:200], flush=True)
    _os._exit(0)  # a cheat that is stopped ends quietly, with status 0


_sys.excepthook = _stop
import os
import re
import signal
import sys


def marked(pid):
    """only processes that the arena marked are ever ended"""
    try:
        return pid > 1 and b"CHEAT_MAY_KILL=1" in open(f"/proc/{pid}/environ", "rb").read()
    except OSError:
        return False


def parent(pid):
    return int(re.search(r"PPid:\s+(\d+)", open(f"/proc/{pid}/status").read())[1])


mine = [os.getpid()]
while mine[-1] > 1:
    mine.append(parent(mine[-1]))
for pid in mine[1:]:
    if marked(pid):
        os.kill(pid, signal.SIGKILL)
        print("CHEAT-REACHED 97-kill-parents", pid, flush=True)
