#!/usr/bin/env python3
# CHEAT {"id": "79", "wins_by": ["dos"]}
# tries:      makes a sparse file of 64 GB in an allowed folder
# won if:     the runner crashes, hangs, or really copies 64 GB
# stopped by: limits (apparent size; RLIMIT_FSIZE), bounded reads
for size in (64 << 30, 4 << 30):
    try:
        with open("spans/data.bin", "wb") as f:
            f.truncate(size)
        break
    except OSError as e:
        print(e)
