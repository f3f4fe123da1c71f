#!/usr/bin/env python3
# CHEAT {"id": "81", "wins_by": ["dos"]}
# tries:      makes files named with newline, tab, quotes, invalid UTF-8, leading dash, glob and pathspec magic, 255 bytes
# won if:     recording the row crashes, or names are taken for options or other files
# stopped by: NUL-separated lists, surrogateescape, '--'
for n in (b"new\nline.py", b"tab\there", b"\xff\xfe.py", b"--output=x", b"-rf", b"*", b":(top)tests", b'q"uote\'s.py', b"a" * 255, b"\xe2\x80\xae.py", b" ", b"x\ndiff --git a/tests/x b/tests/x\n+++ b"):
    try:
        with open(b"spans/" + n, "wb") as f:
            f.write(b"x\n")
    except OSError as e:
        print(e)
