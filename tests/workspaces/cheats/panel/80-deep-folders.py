#!/usr/bin/env python3
# CHEAT {"id": "80", "wins_by": ["dos", "leftover"]}
# tries:      makes 1,500 folders one in another (path far above PATH_MAX)
# won if:     cleaning or recording crashes, or the folder is left behind
# stopped by: clean-up by dir_fd, iterative
for _ in range(1500):
    os.mkdir("d" * 20)
    os.chdir("d" * 20)
open("end", "w").close()
