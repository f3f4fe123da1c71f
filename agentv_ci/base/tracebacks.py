"""What a program printed when it crashed → the exception that ended it."""

from __future__ import annotations

import re

from agentv_ci.base.text import last_line

_PYTHON = "Traceback (most recent call last):"
_NODE = re.compile(
    r"^((?:Uncaught )?[\w.]*(?:Error|Exception)(?: \[\w+\])?(?:: .*)?)\n\s+at ", re.MULTILINE
)
"""An exception that Node.js printed, before its first frame."""


def exception_in(text: str) -> str | None:
    """Return the exception of the last traceback of Python or Node.js; None without one."""
    before, mark, frames = text.rpartition(_PYTHON)
    if mark:
        # Frames are indented, and chained tracebacks come before the one that counts.
        lines = (line for line in frames.splitlines()[1:] if line and not line[0].isspace())
        return next(lines, None)
    thrown = _NODE.findall(before + frames)
    return thrown[-1] if thrown else None


def last_words(text: str) -> str:
    """Return the exception that ended a program, else the last line that it printed, if any."""
    return exception_in(text) or last_line(text)
