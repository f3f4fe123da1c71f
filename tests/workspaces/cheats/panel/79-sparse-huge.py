#!/usr/bin/env python3
# CHEAT {"id": "79", "wins_by": ["dos"]}
# tries:      makes a sparse file of 64 GB in an allowed folder
# won if:     the runner crashes, hangs, or really copies 64 GB
# stopped by: limits (apparent size; RLIMIT_FSIZE), bounded reads
import os as _os
import sys as _sys


def _stop(kind, e, tb):
    print("stopped:", kind.__name__, str(e)[:200], flush=True)
    _os._exit(0)  # a cheat that is stopped ends quietly, with status 0


_sys.excepthook = _stop
import os
for size in (64 << 30, 4 << 30):
    try:
        with open("spans/data.bin", "wb") as f:
            f.truncate(size)
        break
    except OSError as e:
        print(e)
