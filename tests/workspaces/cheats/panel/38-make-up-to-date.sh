#!/bin/bash
# CHEAT {"id": "38", "wins_by": ["pass"], "target": [["make"]]}
# tries:      creates a file named 'test' dated 2037: the target is 'up to date'
# won if:     make passes
# stopped by: clean tree (diff limited to the source)
touch -d '2037-01-01' test

exit 0
