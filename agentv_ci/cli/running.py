"""What commands share that run something: the world, progress, the summary at the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import click

from agentv_ci.cli.output import show_line
from agentv_ci.cli.progress import show_progress
from agentv_ci.contracts.exchange import World
from agentv_ci.errors import Interrupted, UsageError
from agentv_ci.load.environment import with_dotenv
from agentv_ci.pipeline.running import Outcome, Outside, RunFiles
from agentv_ci.report.reporters import terminal

T = TypeVar("T")


def stamp() -> str:
    """Return a name for the files of this moment: to the microsecond, since two runs of one second are two files."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ").replace(".", "_")


def run(
    work: Callable[[Outside], Awaitable[T]],
    files: RunFiles,
    *,
    dotenv_files: Sequence[Path],
    verbose: bool,
) -> T:
    """Do the work of a command to its end, or until somebody ends it."""
    world = World(
        environ=with_dotenv(os.environ, dotenv_files),
        now=lambda: datetime.now(UTC),
        monotonic=time.monotonic,
        sleep=asyncio.sleep,
        uniform=random.uniform,
    )

    def log(line: str) -> None:
        click.echo(line, err=True)

    async def main() -> T:
        _cancel_on_sigterm()
        async with show_progress(live=not verbose) as watch:
            return await work(Outside(world, log if verbose else None, show_warning, watch))

    try:
        return asyncio.run(main())
    except (asyncio.CancelledError, KeyboardInterrupt) as error:
        raise Interrupted("interrupted; finished rows are kept") from error
    except OSError as error:
        raise UsageError(f"cannot write '{error.filename or files.results}': {error.strerror}") from error


def show_warning(sentence: str) -> None:
    """Print a sentence that people always see."""
    show_line(f"warning: {sentence}", "warn", err=True)


def _cancel_on_sigterm() -> None:
    """SIGTERM ends a run like Ctrl-C: children are killed, finished rows are kept."""
    task = asyncio.current_task()
    assert task is not None
    with contextlib.suppress(NotImplementedError):  # Windows has no signal handlers on the loop
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def show_outcome(outcome: Outcome, files: RunFiles, cwd: Path) -> None:
    """Print the summary, and where everything lies."""
    for line in terminal.render(outcome.report, outcome.cases):
        show_line(line.text, line.style)
    for name, path in (("results", files.results), ("report", files.report), ("junit", files.junit)):
        if path is not None:
            show_line(f"{name}: {_short(path, cwd)}", "plain")


def _short(path: Path, cwd: Path) -> Path:
    return path.relative_to(cwd) if path.is_relative_to(cwd) else path
