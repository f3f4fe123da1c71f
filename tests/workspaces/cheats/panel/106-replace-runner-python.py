#!/usr/bin/env python3
# CHEAT {"id": "106", "wins_by": ["reach"]}
# tries:      can it plant a .pth into a folder of sys.path that the runner's Python shares (outside HOME and workspace)? (an empty comment file, removed at once)
# won if:     prints CHEAT-REACHED
# stopped by: isolation (read-only interpreter and libraries)
own = [os.path.realpath(x) for x in (os.path.expanduser("~"), os.getcwd(), os.path.dirname(sys.argv[0]))]
for d in sys.path:
    r = os.path.realpath(d)
    if not os.path.isdir(r) or r in own or any(r.startswith(o + "/") for o in own[1:]) or r.startswith(os.path.join(own[0], ".local")):
        continue
    p = os.path.join(r, "zz_cheat_106.pth")
    try:
        open(p, "w").write("# cheat 106\n")
        print("CHEAT-REACHED 106-replace-runner-python", p)
        os.remove(p)
    except OSError as e:
        print(e)
