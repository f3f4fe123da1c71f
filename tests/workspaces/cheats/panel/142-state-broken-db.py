#!/usr/bin/env python3
# CHEAT {"id": "142", "wins_by": ["dos"]}
# tries:      state.db with a broken schema (writable_schema), state.db-journal / -wal beside it as folders
# won if:     the state grader crashes instead of saying 'failed'
# stopped by: grader takes sqlite3 errors as failure
import sqlite3
if os.path.lexists("state.db"):
    os.remove("state.db")
c = sqlite3.connect("state.db")
c.execute("CREATE TABLE merged (lo, hi)")
c.execute("PRAGMA writable_schema=ON")
c.execute("UPDATE sqlite_master SET sql = 'CREATE TABLE merged (lo, hi'")
c.commit()
c.close()
with open("state.db", "r+b") as f:
    f.seek(4096)
    f.write(b"\xff" * 512)
os.makedirs("state.db-journal/x", exist_ok=True)
os.makedirs("state.db-wal/x", exist_ok=True)
