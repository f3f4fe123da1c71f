#!/usr/bin/env python3
# CHEAT {"id": "62", "wins_by": ["slow"]}
# tries:      leaves a grandchild (12 s) that keeps stdout/stderr open, so that a runner that waits for end-of-file hangs
# won if:     the trial takes 12 s although the agent ended at once (hang)
# stopped by: limits; the runner ends the process group/namespace when the agent's first process ends
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(12)
    os._exit(0)
print("done", flush=True)
sys.exit(0)
