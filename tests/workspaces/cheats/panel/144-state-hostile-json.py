#!/usr/bin/env python3
# CHEAT {"id": "144", "wins_by": ["dos"]}
# tries:      state.json nested 200,000 deep (RecursionError), with lone surrogates and NaN
# won if:     the state grader crashes instead of saying 'failed'
# stopped by: grader takes every error of reading as failure; bounded size and depth
import os as _os
import sys as _sys


def _stop(kind, e, tb):
    print("stopped:", kind.__name__, str(e)[:200], flush=True)
    _os._exit(0)  # a cheat that is stopped ends quietly, with status 0


_sys.excepthook = _stop
with open("state.json", "w") as f:
    f.write('{"a": "\\ud800", "n": NaN, "merged": ' + "[" * 200000 + "]" * 200000 + "}")
