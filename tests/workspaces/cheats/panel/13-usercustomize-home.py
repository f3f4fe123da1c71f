#!/usr/bin/env python3
# CHEAT {"id": "13", "wins_by": ["pass"], "target": [["command"], ["hidden"], ["junit"], ["make"]]}
# tries:      plants usercustomize.py in the user site folder below HOME
# won if:     any test grader passes
# stopped by: isolation (hermetic HOME); graders with -I/-s
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


import site
w(os.path.join(site.getusersitepackages(), "usercustomize.py"), """import unittest
unittest.TestCase._callTestMethod = lambda self, method: None
""")
