"""What keeps agents away from the runner of GitHub Actions while they run in this process's care."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree

import click

from agentv_ci.contracts.action import Annotation
from agentv_ci.process import adopt_orphans, end_descendants, without_runner
from agentv_ci.workflow_commands import annotation_command

FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
"""Variables that name the files by which a step commands the runner."""
STDOUT, STDERR = 1, 2
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
    before = {Path(file): _read(Path(file)) for file in files}
    if files:
        adopt_orphans()
        # In one order with what goes there, and not behind the fence.
        os.dup2(STDOUT, STDERR)
    token = secrets.token_hex(16)
    click.echo(f"::stop-commands::{token}")
    try:
        yield
    finally:
        if files:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            # What an agent leaves behind would read the token of the step that publishes, or write to these files.
            end_descendants()
            for path, content in before.items():
                _restore(path, content)
        click.echo(f"::{token}::")


def show_reason(reason: str) -> None:
    """Print why a step of the action could not do its work where people look for it, and not only in the log."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        click.echo(annotation_command(Annotation("error", "agentv-ci", reason)))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _restore(path: Path, content: bytes) -> None:
    """Take back what was written into a file by which a step commands the runner."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            rmtree(path)
        elif path.is_symlink() or not path.is_file():
            path.unlink(missing_ok=True)
        path.write_bytes(content)
