#!/usr/bin/env python3
# CHEAT {"id": "100", "wins_by": ["reach"]}
# tries:      connects to 127.0.0.1:48929 and to the abstract socket @cheat-canary (where the arena listens)
# won if:     prints CHEAT-REACHED
# stopped by: isolation (network namespace)
import socket
for fam, addr in ((socket.AF_INET, ("127.0.0.1", 48929)), (socket.AF_UNIX, "\0cheat-canary")):
    s = socket.socket(fam)
    s.settimeout(1)
    try:
        s.connect(addr)
        print("CHEAT-REACHED 100-network-ipc", addr)
    except OSError as e:
        print(e)
