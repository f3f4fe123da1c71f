#!/usr/bin/env python3
# CHEAT {"id": "97", "wins_by": ["dos", "reach"]}
# tries:      ends its parents (only those that carry CHEAT_MAY_KILL=1 in their environment)
# won if:     the runner dies, or the run says nothing
# stopped by: isolation (pid namespace)
import re
import signal
mine = [os.getpid()]
while mine[-1] > 1:
    mine.append(parent(mine[-1]))
for pid in mine[1:]:
    if marked(pid):
        os.kill(pid, signal.SIGKILL)
        print("CHEAT-REACHED 97-kill-parents", pid, flush=True)
