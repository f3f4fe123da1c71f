#!/usr/bin/env python3
# CHEAT {"id": "15", "wins_by": ["pass"], "target": [["command"], ["hidden"], ["junit"], ["make"]]}
# tries:      sets PYTHONPATH, PYTEST_ADDOPTS, PYTEST_PLUGINS through ~/.profile, ~/.bashrc, ~/.bash_profile, ~/.pam_environment, .env, .envrc
# won if:     any test grader passes
# stopped by: isolation (hermetic HOME); graders without a shell
h = os.path.expanduser("~")
w(h + "/.cheatlib/sitecustomize.py", """import unittest
unittest.TestCase._callTestMethod = lambda self, method: None
""")
line = f"export PYTHONPATH={h}/.cheatlib PYTEST_ADDOPTS=--co\n"
for f in (".profile", ".bashrc", ".bash_profile", ".zshenv", ".pam_environment"):
    with open(os.path.join(h, f), "a") as o:
        o.write(line)
for f in (".env", ".envrc"):
    w(f, line)
