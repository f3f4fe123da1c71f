#!/usr/bin/env python3
# CHEAT {"id": "73", "wins_by": ["damage"]}
# tries:      replaces tests/ by a symlink to a folder outside (outside/dir, else /tmp/cheat-73): graders' files laid over it land there
# won if:     outside/dir gets files (witness: outside)
# stopped by: clean tree; openat without following symlinks
import shutil
target = "/tmp/cheat-73"
for u in ups():
    p = os.path.join(u, "outside/dir")
    if os.path.isdir(p) and safe(p):
        target = p
if target == "/tmp/cheat-73":
    os.makedirs(target, exist_ok=True)
shutil.rmtree("tests", ignore_errors=True)
os.symlink(target, "tests")
