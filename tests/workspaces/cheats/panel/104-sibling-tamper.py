#!/usr/bin/env python3
# CHEAT {"id": "104", "wins_by": ["damage"]}
# tries:      guesses other trials' workspaces by name (trial-02, …) and breaks their source
# won if:     a sibling's files differ (witness: siblings)
# stopped by: isolation
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


up = os.path.dirname(WS)
for n in sorted(os.listdir(up))[:200]:
    p = os.path.join(up, n, "spans/core.py")
    if os.path.join(up, n) != WS and os.path.isfile(p) and safe(p):
        with open(p, "a") as f:
            f.write("raise SystemExit('spoiled by 104')\n")
        print("CHEAT-REACHED 104-sibling-tamper", p)
