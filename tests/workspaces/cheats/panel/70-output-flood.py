#!/usr/bin/env python3
# CHEAT {"id": "70", "wins_by": ["dos", "flood"]}
# tries:      prints 40 MB to stdout and stderr, with NUL, ANSI and invalid UTF-8
# won if:     the runner keeps more than 10 MB of it, or fails to decode it (crash)
# stopped by: limits (bounded answer, errors=replace)
block = (b"\x00\xff\x1b]0;x\x07" + b"A" * 1015 + b"\n") * 1024
for _ in range(20):
    os.write(1, block)
    os.write(2, block)
