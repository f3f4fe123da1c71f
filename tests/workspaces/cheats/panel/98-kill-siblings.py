#!/usr/bin/env python3
# CHEAT {"id": "98", "wins_by": ["reach"]}
# tries:      ends other processes that are not its parents (only those that carry CHEAT_MAY_KILL=1)
# won if:     prints CHEAT-REACHED, another trial dies
# stopped by: isolation (pid namespace)
import re
import signal
mine = [os.getpid()]
while mine[-1] > 1:
    mine.append(parent(mine[-1]))
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    if pid not in mine and marked(pid):
        os.kill(pid, signal.SIGKILL)
        print("CHEAT-REACHED 98-kill-siblings", pid, flush=True)
