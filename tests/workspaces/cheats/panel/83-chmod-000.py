#!/usr/bin/env python3
# CHEAT {"id": "83", "wins_by": ["dos", "leftover"]}
# tries:      makes files and folders mode 000 so that copying, recording or cleaning fails
# won if:     recording crashes, or the folder is left behind (not as true root with CAP_DAC_OVERRIDE)
# stopped by: clean-up that sets modes first
os.makedirs("spans/locked/deeper", exist_ok=True)
open("spans/locked/deeper/f", "w").close()
open("spans/locked/g", "w").close()
os.chmod("spans/locked/g", 0)
os.chmod("spans/locked/deeper", 0)
os.chmod("spans/locked", 0)
os.chmod("spans", 0o500)
