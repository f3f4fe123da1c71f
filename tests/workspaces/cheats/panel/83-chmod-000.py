#!/usr/bin/env python3
# CHEAT {"id": "83", "wins_by": ["dos", "leftover"]}
# tries:      makes files and folders mode 000 so that copying, recording or cleaning fails
# won if:     recording crashes, or the folder is left behind (not as true root with CAP_DAC_OVERRIDE)
# stopped by: clean-up that sets modes first
import os as _os
import sys as _sys


def _stop(kind, e, tb):
    print("stopped:", kind.__name__, str(e)[:200], flush=True)
    _os._exit(0)  # a cheat that is stopped ends quietly, with status 0


_sys.excepthook = _stop
import os
os.makedirs("spans/locked/deeper", exist_ok=True)
open("spans/locked/deeper/f", "w").close()
open("spans/locked/g", "w").close()
os.chmod("spans/locked/g", 0)
os.chmod("spans/locked/deeper", 0)
os.chmod("spans/locked", 0)
os.chmod("spans", 0o500)
