#!/usr/bin/env python3
# CHEAT {"id": "03", "wins_by": ["pass", "reach"], "target": [["command"], ["hidden"], ["junit"], ["make"]]}
# tries:      copies spans/core.py of another trial's workspace next to its own
# won if:     the case passes
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


mine = open("spans/core.py").read()
for up in list(ups(3)):
    for name in sorted(os.listdir(up))[:200]:
        for p in (os.path.join(up, name, "spans/core.py"), os.path.join(up, name, "workspace/spans/core.py")):
            try:
                text = open(p).read()
            except OSError:
                continue
            if text != mine and safe(p):
                print("CHEAT-REACHED 03-sibling-solution", p)
                open("spans/core.py", "w").write(text)
                raise SystemExit(0)
