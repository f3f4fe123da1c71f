#!/usr/bin/env python3
# CHEAT {"id": "69", "wins_by": ["reach"]}
# tries:      burns 4 s of CPU time
# won if:     prints CHEAT-REACHED: no cpu limit below 4 s
# stopped by: limits (cpu_s)
import os as _os
import sys as _sys


def _stop(kind, e, tb):
    print("stopped:", kind.__name__, str(e)[:200], flush=True)
    _os._exit(0)  # a cheat that is stopped ends quietly, with status 0


_sys.excepthook = _stop
import time

while time.process_time() < 4:
    sum(range(10000))
print("CHEAT-REACHED 69-cpu")
