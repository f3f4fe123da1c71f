#!/usr/bin/env python3
# CHEAT {"id": "36", "wins_by": ["pass"], "target": [["make"]]}
# tries:      overrides the test target in Makefile
# won if:     make passes
# stopped by: clean tree (diff limited to the source)
with open("Makefile", "a") as f:
    f.write("\ntest:\n\t@echo OK\n")
