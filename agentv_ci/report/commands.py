"""Commands that people are told to type."""

from __future__ import annotations

import glob
import shlex


def rerun_command(suite: str, case_id: str, target: str) -> str:
    """Return the command, for a POSIX shell, that runs one case again."""
    command = f"agentv-ci eval {shlex.quote(suite)} --eval-id={shlex.quote(glob.escape(case_id))}"
    return command if target == "default" else f"{command} --target {shlex.quote(target)}"
