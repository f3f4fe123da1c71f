"""Targets that retry at once, and commands in Bash."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import CommandResult, clean_environment, evals

DEADLINE_S = 120
"""Far more than any run here takes."""


def gpt(base_url: str, **settings: Any) -> dict[str, Any]:
    """Return a target that asks a chat API, and retries at once."""
    quick = {"retry_initial_delay_ms": 1, "retry_max_delay_ms": 2, "retry_backoff_factor": 1}
    return evals.gpt(base_url, **{**quick, **settings})


def shell(
    command: str, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, pipe: int | None = None
) -> CommandResult:
    """Run a command in Bash; `$0` is the first argument, `pipe` a file descriptor that it may use."""
    done = subprocess.run(
        ["/bin/bash", "-c", command, *arguments],
        cwd=cwd,
        env=clean_environment(env),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        pass_fds=() if pipe is None else (pipe,),
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)
