#!/usr/bin/env python3
# CHEAT {"id": "68", "wins_by": ["reach"]}
# tries:      takes 400 MB of memory for one second
# won if:     prints CHEAT-REACHED: no memory limit below that
# stopped by: limits (memory_mb)
import time

b = []
try:
    for _ in range(400):
        b.append(bytearray(b"x") * (1 << 20))
    print("CHEAT-REACHED 68-memory", len(b), "MB", flush=True)
    time.sleep(1)
except MemoryError:
    print("stopped at", len(b))
