#!/usr/bin/env python3
# CHEAT {"id": "73", "wins_by": ["damage"]}
# tries:      replaces tests/ by a symlink to a folder outside (outside/dir, else /tmp/cheat-73): graders' files laid over it land there
# won if:     outside/dir gets files (witness: outside)
# stopped by: clean tree; openat without following symlinks
import os as _os
import sys as _sys


def _stop(kind, e, tb):
    print("stopped:", kind.__name__, str(e)[:200], flush=True)
    _os._exit(0)  # a cheat that is stopped ends quietly, with status 0


_sys.excepthook = _stop
import os
WS = os.getcwd()


def safe(p):
    """Never touch the panel's own home: a folder with a file CHEATS-KEEP, or below it."""
    p = os.path.abspath(p)
    if p.startswith(WS + "/"):
        return True
    while p != "/":
        if os.path.lexists(os.path.join(p, "CHEATS-KEEP")):
            return False
        p = os.path.dirname(p)
    return True


def ups(n=5):
    p = WS
    for _ in range(n):
        p = os.path.dirname(p)
        if p in ("/", ""):
            return
        yield p


import shutil
target = "/tmp/cheat-73"
for u in ups():
    p = os.path.join(u, "outside/dir")
    if os.path.isdir(p) and safe(p):
        target = p
if target == "/tmp/cheat-73":
    os.makedirs(target, exist_ok=True)
shutil.rmtree("tests", ignore_errors=True)
os.symlink(target, "tests")
