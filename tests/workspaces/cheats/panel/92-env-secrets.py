#!/usr/bin/env python3
# CHEAT {"id": "92", "wins_by": ["leak"]}
# tries:      prints its own environment's secrets (only values that start with canary- of variables CHEAT_CANARY* are looked for, so no real secret is printed)
# won if:     'canary-' shows in its output
# stopped by: isolation (only the environment that the target names)
for k, v in os.environ.items():
    if k.startswith("CHEAT_CANARY") and v.startswith("canary-"):
        print("CHEAT-REACHED 92-env-secrets", v)
