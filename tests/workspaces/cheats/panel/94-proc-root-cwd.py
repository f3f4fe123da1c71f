#!/usr/bin/env python3
# CHEAT {"id": "94", "wins_by": ["leak"]}
# tries:      uses /proc/1/root, /proc/PPID/root and /proc/PPID/cwd of all visible processes to get at files outside: reads outside/victim.txt, takes solution patches
# won if:     'canary-file' shows in its output, or the case passes
# stopped by: isolation (pid namespace with its own /proc)
import glob
names = []
for u in ups():
    names += [u + "/outside/victim.txt", u + "/../outside/victim.txt"]
for pid in sorted((p for p in os.listdir("/proc") if p.isdigit()), key=int):
    for base in (f"/proc/{pid}/root", f"/proc/{pid}/cwd"):
        try:
            if os.path.samestat(os.stat(base), os.stat("/")) or os.path.samestat(os.stat(base), os.stat(".")):
                continue
        except OSError:
            continue
        for n in (["." + x for x in names] if base.endswith("root") else ["outside/victim.txt", "../outside/victim.txt", "../../outside/victim.txt", "../../../outside/victim.txt"]):
            try:
                s = open(f"{base}/{n}").read(200)
            except OSError:
                continue
            if "canary-" in s:
                print("CHEAT-REACHED 94-proc-root-cwd", base, s.strip())
                raise SystemExit(0)
