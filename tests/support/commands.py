"""The command line: in this process, or in one of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from agentv_ci.cli import run


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command printed and its exit status."""

    code: int
    out: str
    err: str


def run_command(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, stdin: str = ""
) -> CommandResult:
    """Run the command line in this process: its folder, environment and streams are the command's own.

    No stream is a terminal, and what child processes print to the inherited streams is not captured.
    """
    out, err = _stream(), _stream()
    with (
        contextlib.chdir(cwd),
        mock.patch.dict(os.environ, clean_environment(env), clear=True),
        mock.patch.object(sys, "stdin", _stream(stdin)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = run([str(each) for each in arguments])
    return CommandResult(code, _text(out), _text(err))


def run_process(
    *arguments: str | Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 60,
    through: Sequence[str] = (),
) -> CommandResult:
    """Run the command line in a process of its own, for what only a process shows: signals, streams, start-up.

    `through` is a command that starts it, such as `ORDINARY`.
    """
    command = [*through, sys.executable, "-m", "agentv_ci", *map(str, arguments)]
    return run_program(*command, cwd=cwd, env=env, timeout_s=timeout_s)


def run_program(*command: str, cwd: Path, env: Mapping[str, str] | None = None, timeout_s: float = 60) -> CommandResult:
    """Run any program in a clean environment, without input."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=clean_environment(env),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without anything that would change what agentv-ci does."""
    changing = ("OPENAI_", "GITHUB_", "ACTIONS_", "AGENTV_", "NO_COLOR")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(changing)}
    return {**inherited, **(extra or {})}


def _stream(text: str = "") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8", newline="")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
