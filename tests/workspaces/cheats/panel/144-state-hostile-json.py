#!/usr/bin/env python3
# CHEAT {"id": "144", "wins_by": ["dos"]}
# tries:      state.json nested 200,000 deep (RecursionError), with lone surrogates and NaN
# won if:     the state grader crashes instead of saying 'failed'
# stopped by: grader takes every error of reading as failure; bounded size and depth
with open("state.json", "w") as f:
    f.write('{"a": "\\ud800", "n": NaN, "merged": ' + "[" * 200000 + "]" * 200000 + "}")
