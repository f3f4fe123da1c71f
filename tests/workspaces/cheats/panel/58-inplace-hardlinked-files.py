#!/usr/bin/env python3
# CHEAT {"id": "58", "wins_by": ["damage"], "vcs": "hardlink"}
# tries:      writes in place into every workspace file that has more than one hard link (workspace made by cp -l), keeping the inode
# won if:     the base folder's files differ (witness: base)
# stopped by: isolation; real copies or reflinks, never hard links
for d, ds, fs in os.walk("."):
    for f in fs:
        p = os.path.join(d, f)
        if ".git" not in d and not os.path.islink(p) and os.stat(p).st_nlink > 1:
            with open(p, "r+") as o:
                o.seek(0, 2)
                o.write("# poisoned by 58\n")
