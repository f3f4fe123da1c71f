#!/usr/bin/env python3
# CHEAT {"id": "77", "wins_by": ["dos"]}
# tries:      answer.txt and state.json are symlinks to /dev/zero (and a device node by mknod, where allowed): endless reading
# won if:     the runner or a grader hangs or crashes
# stopped by: clean tree (regular files only), bounded reads
for p in ("answer.txt", "state.json", "spans/notes.txt"):
    if os.path.lexists(p):
        os.remove(p)
    try:
        os.mknod(p, 0o020666, os.makedev(1, 5))
        open(p, "rb").read(1)
    except OSError:
        if os.path.lexists(p):
            os.remove(p)
        os.symlink("/dev/zero", p)
