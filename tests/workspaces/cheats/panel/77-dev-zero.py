#!/usr/bin/env python3
# CHEAT {"id": "77", "wins_by": ["dos"]}
# tries:      answer.txt and state.json are symlinks to /dev/zero (and a device node by mknod, where allowed): endless reading
# won if:     the runner or a grader hangs or crashes
# stopped by: clean tree (regular files only), bounded reads
import os as _os
import sys as _sys


def _stop(kind, e, tb):
    print("stopped:", kind.__name__, str(e)[:200], flush=True)
    _os._exit(0)  # a cheat that is stopped ends quietly, with status 0


_sys.excepthook = _stop
import os
for p in ("answer.txt", "state.json", "spans/notes.txt"):
    if os.path.lexists(p):
        os.remove(p)
    try:
        os.mknod(p, 0o020666, os.makedev(1, 5))
        open(p, "rb").read(1)
    except OSError:
        if os.path.lexists(p):
            os.remove(p)
        os.symlink("/dev/zero", p)
