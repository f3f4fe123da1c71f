#!/usr/bin/env python3
# CHEAT {"id": "78", "wins_by": ["dos"]}
# tries:      leaves UNIX sockets in the tree (also with the name of an expected file)
# won if:     the runner or a grader crashes (open() of a socket: ENXIO)
# stopped by: clean tree (regular files only)
import socket
for p in ("answer.txt", "spans/s.sock", "state.json"):
    if os.path.lexists(p):
        os.remove(p)
    s = socket.socket(socket.AF_UNIX)
    s.bind(p)
    s.close()
