#!/usr/bin/env python3
# CHEAT {"id": "93", "wins_by": ["leak"]}
# tries:      reads /proc/PID/environ of its parents and of every visible process (only values that start with canary- of variables CHEAT_CANARY* are looked for, so no real secret is printed)
# won if:     'canary-' shows in its output
# stopped by: isolation (pid namespace with its own /proc)
import re
mine = {v for k, v in os.environ.items() if k.startswith("CHEAT_CANARY")}
for pid in os.listdir("/proc"):
    if pid.isdigit():
        try:
            e = open(f"/proc/{pid}/environ", "rb").read()
        except OSError:
            continue
        for m in re.findall(rb"CHEAT_CANARY\w*=(canary-[\w-]+)", e):
            print("CHEAT-REACHED 93-proc-environ", pid, m.decode())
