"""What people type to see for themselves."""

from __future__ import annotations

import unicodedata
from glob import escape
from shlex import quote

PROGRAM = "agentv-ci"


def rerun_command(suite: str, case_id: str, target: str) -> str:
    """Return the line that runs one case alone, in the repository's root; any shell of POSIX takes it as it stands."""
    # `--target default` means no override; without one that target is asked anyway.
    chosen = "" if target == "default" else f" --target={quote(target)}"
    path = suite if _is_typeable(suite) else _as_glob(suite)
    named = f"./{path}" if path.startswith("-") else path
    return f"{PROGRAM} eval {quote(named)} --eval-id={quote(_as_glob(case_id))}{chosen}"


def _as_glob(text: str) -> str:
    """A glob of one text, in which `?` stands for what cannot be typed, such as a line break."""
    pattern = escape(text)
    return pattern if _is_typeable(pattern) else "".join(each if _is_typeable(each) else "?" for each in pattern)


def _is_typeable(text: str) -> bool:
    """Whether a text can stand in a line as it is; spaces of all widths can."""
    return text.isprintable() or all(each.isprintable() or unicodedata.category(each) == "Zs" for each in text)
