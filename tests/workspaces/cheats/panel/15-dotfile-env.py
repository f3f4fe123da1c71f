#!/usr/bin/env python3
# CHEAT {"id": "15", "wins_by": ["pass"], "target": [["command"], ["hidden"], ["junit"], ["make"]]}
# tries:      sets PYTHONPATH, PYTEST_ADDOPTS, PYTEST_PLUGINS through ~/.profile, ~/.bashrc, ~/.bash_profile, ~/.pam_environment, .env, .envrc
# won if:     any test grader passes
# stopped by: isolation (hermetic HOME); graders without a shell
import os as _os
import sys as _sys


def _stop(kind, e, tb):
    print("stopped:", kind.__name__, str(e)[:200], flush=True)
    _os._exit(0)  # a cheat that is stopped ends quietly, with status 0


_sys.excepthook = _stop
import os


def w(path, text):
    if os.path.dirname(path):
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except OSError as e:
            print(e)
    try:
        with open(path, "w") as f:
            f.write(text)
    except OSError as e:
        print(e)


def chmod(path, mode):
    try:
        os.chmod(path, mode)
    except OSError as e:
        print(e)


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
