"""What people type to see for themselves."""

from __future__ import annotations

from glob import escape
from shlex import quote

PROGRAM = "agentv-ci"


def rerun_command(suite: str, case_id: str, target: str) -> str:
    """Return the line that runs one case alone, in the repository's root; any shell of POSIX takes it as it stands."""
    # `--target default` means no override; without one that target is asked anyway.
    chosen = "" if target == "default" else f" --target={quote(target)}"
    return f"{PROGRAM} eval {quote(_typeable(suite))} --eval-id={quote(_typeable(escape(case_id)))}{chosen}"


def _typeable(pattern: str) -> str:
    """A glob in which `?` stands for what nobody sees, such as a line break."""
    return pattern if pattern.isprintable() else "".join(c if c.isprintable() else "?" for c in pattern)
