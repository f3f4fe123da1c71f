#!/usr/bin/env python3
# CHEAT {"id": "80", "wins_by": ["dos", "leftover"]}
# tries:      makes 1,500 folders one in another (path far above PATH_MAX)
# won if:     cleaning or recording crashes, or the folder is left behind
# stopped by: clean-up by dir_fd, iterative
import os as _os
import sys as _sys


def _stop(kind, e, tb):
    print("stopped:", kind.__name__, str(e)[:200], flush=True)
    _os._exit(0)  # a cheat that is stopped ends quietly, with status 0


_sys.excepthook = _stop
import os
for _ in range(1500):
    os.mkdir("d" * 20)
    os.chdir("d" * 20)
open("end", "w").close()
