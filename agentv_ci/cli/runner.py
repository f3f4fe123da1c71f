"""What keeps agents away from the runner of GitHub Actions while they run in this process's care."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from agentv_ci.process import adopt_orphans, end_descendants, without_runner

FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
"""Variables that name the files by which a step commands the runner."""
FILE_OPTION = "--runner-file"


def drop_runner_variables() -> None:
    """Begin this process again without them; the files they name come as options.

    Whoever runs as the same user can read with which environment a process began.
    """
    clean = without_runner(os.environ)
    if len(clean) < len(os.environ):
        files = [f"{FILE_OPTION}={path}" for name in FILES if (path := os.environ.get(name))]
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:], *files], clean)  # noqa: S606  # this program


@contextmanager
def no_commands(files: Sequence[str]) -> Iterator[None]:
    """Have the runner take no command meanwhile, neither from what is printed nor from its files: none is meant."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        yield
        return
    if files:
        adopt_orphans()
    token = secrets.token_hex(16)
    click.echo(f"::stop-commands::{token}")
    try:
        yield
    finally:
        if files:
            # What an agent leaves behind would read the token of the step that publishes, or write to these files.
            end_descendants()
            _empty(files)
        click.echo(f"::{token}::")


def _empty(files: Sequence[str]) -> None:
    """Take back what was written into the files by which a step commands the runner."""
    for file in files:
        path = Path(file)
        with suppress(OSError):
            if path.is_file() and not path.is_symlink():
                os.truncate(path, 0)
            else:
                path.unlink()
