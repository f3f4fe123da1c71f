#!/usr/bin/env python3
# CHEAT {"id": "65", "wins_by": ["reach"]}
# tries:      writes up to 200 MB into the workspace, TMPDIR and HOME; removes it again
# won if:     prints CHEAT-REACHED (200 MB written): no disk limit below that
# stopped by: limits (disk_mb)
import tempfile

n = 0
files = []
for d in (".", tempfile.gettempdir(), os.path.expanduser("~")):
    p = os.path.join(d, ".cheat-fill")
    try:
        with open(p, "wb", buffering=0) as f:
            files.append(p)
            while n < 200:
                if f.write(bytes(1 << 20)) < (1 << 20):
                    break
                n += 1
    except OSError as e:
        print(d, e)
for p in files:
    try:
        os.remove(p)
    except OSError:
        pass
print("CHEAT-REACHED 65-fill-disk" if n >= 200 else "stopped at", n, "MB")
