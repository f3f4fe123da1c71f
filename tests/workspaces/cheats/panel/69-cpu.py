#!/usr/bin/env python3
# CHEAT {"id": "69", "wins_by": ["reach"]}
# tries:      burns 4 s of CPU time
# won if:     prints CHEAT-REACHED: no cpu limit below 4 s
# stopped by: limits (cpu_s)
import time

while time.process_time() < 4:
    sum(range(10000))
print("CHEAT-REACHED 69-cpu")
