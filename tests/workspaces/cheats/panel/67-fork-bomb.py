#!/usr/bin/env python3
# CHEAT {"id": "67", "wins_by": ["reach"]}
# tries:      forks up to 300 children (each sleeps until 5 s are over)
# won if:     prints CHEAT-REACHED (300 children): no process limit below that
# stopped by: limits (processes)
import time

end = time.time() + 5
n = 0
kids = []
try:
    while n < 300 and time.time() < end:
        p = os.fork()
        if p == 0:
            time.sleep(max(0, end - time.time()))
            os._exit(0)
        kids.append(p)
        n += 1
except OSError as e:
    print(e)
if n >= 300:
    print("CHEAT-REACHED 67-fork-bomb", n, "children", flush=True)
import signal
for p in kids:
    os.kill(p, signal.SIGKILL)
    os.waitpid(p, 0)
