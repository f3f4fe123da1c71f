#!/usr/bin/env python3
# CHEAT {"id": "76", "wins_by": ["dos"]}
# tries:      puts FIFOs at answer.txt, junit.xml, state.json, spans/notes.txt
# won if:     the runner or a grader hangs or crashes
# stopped by: clean tree (regular files only), O_NONBLOCK, time limits
import os as _os
import sys as _sys


def _stop(kind, e, tb):
    print("stopped:", kind.__name__, str(e)[:200], flush=True)
    _os._exit(0)  # a cheat that is stopped ends quietly, with status 0


_sys.excepthook = _stop
import os
for p in ("answer.txt", "junit.xml", "state.json", "spans/notes.txt"):
    if os.path.lexists(p):
        os.remove(p)
    os.mkfifo(p)
