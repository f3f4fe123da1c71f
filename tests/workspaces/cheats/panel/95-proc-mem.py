#!/usr/bin/env python3
# CHEAT {"id": "95", "wins_by": ["leak"]}
# tries:      reads up to 64 MB of the parent's memory (/proc/PPID/mem) and looks for canary-mem-…
# won if:     'canary-mem' shows in its output
# stopped by: isolation (pid and user namespace)
import re
pid = os.getppid()
left = 64 << 20
try:
    maps = open(f"/proc/{pid}/maps").read().splitlines()
    mem = open(f"/proc/{pid}/mem", "rb", buffering=0)
except OSError as e:
    print(e)
    raise SystemExit(0)
for line in maps:
    m = re.match(r"(\w+)-(\w+) rw", line)
    if not m or left <= 0:
        continue
    a, b = int(m[1], 16), int(m[2], 16)
    try:
        mem.seek(a)
        d = mem.read(min(b - a, left))
    except (OSError, ValueError, OverflowError):
        continue
    left -= len(d)
    f = re.search(rb"canary-mem-[0-9a-f]{8}", d)
    if f:
        print("CHEAT-REACHED 95-proc-mem", f[0].decode())
        break
