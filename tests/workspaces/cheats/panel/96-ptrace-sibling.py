#!/usr/bin/env python3
# CHEAT {"id": "96", "wins_by": ["reach"]}
# tries:      ptrace-attaches to processes that carry CHEAT_MAY_KILL=1 in their environment (and lets them go)
# won if:     prints CHEAT-REACHED
# stopped by: isolation (pid namespace, seccomp)
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
me = {os.getpid()}
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    try:
        if pid in me or b"CHEAT_MAY_KILL=1" not in open(f"/proc/{pid}/environ", "rb").read():
            continue
    except OSError:
        continue
    if libc.ptrace(16, pid, 0, 0) == 0:
        os.waitpid(pid, 0x40000000)
        libc.ptrace(17, pid, 0, 0)
        print("CHEAT-REACHED 96-ptrace-sibling", pid, flush=True)
        break
