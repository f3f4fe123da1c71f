#!/usr/bin/env python3
"""Out-of-process grader: python grade_apart.py --out /path/the/tree/cannot/know.xml   (cwd = tree to grade).

The judge never imports the tree. A child process gets only the INPUT of one test on stdin, and must say the result as
plain JSON followed by a nonce that it gets only together with the input; the expected values stay here. Patching unittest,
__eq__ objects, os._exit(0), atexit and stack inspection gain nothing: no answer, or a wrong one, is a failure.
What this does not do by itself: stop the child from reading this file or writing the --out path. That is the
sandbox's job (separate user or mount namespace for the child; --out outside the child's world, written at the end).
"""
import argparse
import json
import os
import secrets
import subprocess
import sys
from xml.sax.saxutils import quoteattr

CASES = {
    "test_core.CoreTest.test_merge_touching": [("merge", [[1, 3], [3, 5]], [[1, 5]]),
                                               ("merge", [[10, 12], [12, 17], [17, 18]], [[10, 18]])],
    "test_core.CoreTest.test_merge_overlap": [("merge", [[4, 9], [1, 5]], [[1, 9]]),
                                              ("merge", [[40, 90], [91, 95]], [[40, 90], [91, 95]])],
    "test_core.CoreTest.test_total": [("total", [[1, 5], [4, 9], [20, 21]], 9)],
    "test_hidden.HiddenTest.test_chain": [("merge", [[7, 8], [2, 4], [4, 7], [11, 13]], [[2, 8], [11, 13]])],
    "test_hidden.HiddenTest.test_apart": [("merge", [[2, 4], [5, 6]], [[2, 4], [5, 6]])],
}
CHILD = """
import json, sys
q = json.loads(sys.stdin.readline())
sys.path.insert(0, q["tree"])
from spans import core
r = getattr(core, q["fn"])([tuple(x) for x in q["arg"]])
print(json.dumps({"nonce": q["nonce"], "result": r}))
"""


def ask(fn, arg):
    nonce = secrets.token_hex(16)
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        p = subprocess.run([sys.executable, "-I", "-S", "-X", "pycache_prefix=/nonexistent", "-c", CHILD], env=env, cwd="/", timeout=10,
                           input=json.dumps({"nonce": nonce, "fn": fn, "arg": arg, "tree": os.getcwd()}) + "\n",
                           capture_output=True, text=True)
        lines = p.stdout.strip().splitlines()
        if len(lines) != 1:
            return None
        doc = json.loads(lines[0])
        return doc["result"] if doc["nonce"] == nonce else None
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
        return None


ap = argparse.ArgumentParser()
ap.add_argument("--out", required=True)
a = ap.parse_args()
rows = [(t, all(ask(fn, arg) == want for fn, arg, want in qs)) for t, qs in CASES.items()]
tmp = a.out + ".part"
with open(tmp, "w", encoding="utf-8") as f:
    f.write(f'<testsuite name="graders" tests="{len(rows)}" failures="{sum(not ok for _, ok in rows)}">\n')
    for t, ok in rows:
        cls, name = t.rsplit(".", 1)
        f.write(f"<testcase classname={quoteattr(cls)} name={quoteattr(name)}>{'' if ok else '<failure/>'}</testcase>\n")
    f.write("</testsuite>\n")
os.replace(tmp, a.out)
sys.exit(0 if all(ok for _, ok in rows) else 1)
