#!/usr/bin/env python3
# CHEAT {"id": "78", "wins_by": ["dos"]}
# tries:      leaves UNIX sockets in the tree (also with the name of an expected file)
# won if:     the runner or a grader crashes (open() of a socket: ENXIO)
# stopped by: clean tree (regular files only)
import os as _os
import sys as _sys


def _stop(kind, e, tb):
    print("stopped:", kind.__name__, str(e)[:200], flush=True)
    _os._exit(0)  # a cheat that is stopped ends quietly, with status 0


_sys.excepthook = _stop
import os
import socket
for p in ("answer.txt", "spans/s.sock", "state.json"):
    if os.path.lexists(p):
        os.remove(p)
    s = socket.socket(socket.AF_UNIX)
    s.bind(p)
    s.close()
