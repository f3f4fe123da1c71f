"""What commands that run something share: signals and progress."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import click

from agentv_ci.app.environment import system_environment
from agentv_ci.app.report_files import RunFiles
from agentv_ci.cli.console import ignoring_lost_output, show_warning
from agentv_ci.cli.exit import interruptible
from agentv_ci.errors import INTERRUPTED, Interrupted, UsageError
from agentv_ci.execute.run_services import Progress, RunServices, ignore
from agentv_ci.load.files import with_dotenv
from agentv_ci.process import kill_all
from agentv_ci.report.wrapping import clipped
from agentv_ci.text import counted, without_commands

T = TypeVar("T")

MANY_FILES = 65_536
PLAIN_INTERVAL_S = 5.0
LIVE_INTERVAL_S = 0.1
WIDEST_BAR = 40
FIGURES_COLUMNS = 75
"""What figures of a small run take; the bar has the rest of the line."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stamp() -> str:
    """Return a timestamp for file names, to the microsecond so that two runs never share one."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ").replace(".", "_")


def run(
    work: Callable[[RunServices], Awaitable[T]], files: RunFiles, *, dotenv_files: Sequence[Path], verbose: bool
) -> T:
    """Do the work of a command until it ends or is interrupted."""
    environment = system_environment(with_dotenv(os.environ, dotenv_files))

    def log(line: str) -> None:
        with ignoring_lost_output():
            click.echo(without_commands(line), err=True)

    def warn(sentence: str) -> None:
        with ignoring_lost_output():
            show_warning(sentence)

    _allow_connections()
    # The plan stays until the end: the garbage collector need not scan it again and again.
    gc.freeze()

    async def main() -> T:
        _end_on_signals()
        async with show_progress(live=not verbose) as watch:
            return await work(RunServices(environment, log if verbose else ignore, warn, log, watch))

    try:
        # The loop resets the signal handlers that were set before it.
        with interruptible():
            return asyncio.run(main())
    except (asyncio.CancelledError, KeyboardInterrupt) as error:
        raise Interrupted("interrupted; finished rows are kept") from error
    except OSError as error:
        raise UsageError(f"cannot write '{error.filename or files.results}': {error.strerror}") from error


def _allow_connections() -> None:
    """Raise the limit of open files as far as the system allows: each question under way takes one."""
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MANY_FILES if most == resource.RLIM_INFINITY else min(most, MANY_FILES)
    if least < limit:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))


def _end_on_signals() -> None:
    """On Ctrl-C, SIGTERM and a closed terminal, kill children and keep finished rows; on a second signal, exit."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None, "a coroutine runs in a task"
    # Ignored signals stay ignored, as under `nohup` and in background jobs of a shell.
    handled = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]

    def end() -> None:
        for number in handled:
            loop.remove_signal_handler(number)
            signal.signal(number, _end_at_once)
        task.cancel()

    for number in handled:
        with contextlib.suppress(NotImplementedError):  # Windows has no signal handlers on the loop
            loop.add_signal_handler(number, end)


def _end_at_once(*_: object) -> None:
    kill_all()
    os._exit(INTERRUPTED)


@asynccontextmanager
async def show_progress(*, live: bool) -> AsyncIterator[Callable[[Progress], None]]:
    """Show progress on standard error until the run ends; yields what takes the progress to watch."""
    # The action installs no rich: its steps have no terminal.
    show = _live if live and sys.stderr is not None and _takes_commands() and find_spec("rich") else _plain
    tasks: list[asyncio.Task[None]] = []

    def watch(progress: Progress) -> None:
        tasks.append(asyncio.get_running_loop().create_task(show(progress)))

    try:
        yield watch
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _takes_commands() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


async def _plain(progress: Progress) -> None:
    begun = time.monotonic()
    while True:
        await asyncio.sleep(PLAIN_INTERVAL_S)
        with contextlib.suppress(OSError):
            click.echo(_line(progress, time.monotonic() - begun), err=True)


async def _live(progress: Progress) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    begun = time.monotonic()
    context = click.get_current_context(silent=True)
    console = Console(stderr=True, no_color=context is not None and context.color is False)
    width = min(WIDEST_BAR, max(0, console.width - FIGURES_COLUMNS))
    # One text, cut at the end of the line: separate columns would each be cut a little.
    columns = (*([BarColumn(bar_width=width)] if width else []), TextColumn("{task.description}", markup=False))
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=progress.total)
        while True:
            text = clipped(_line(progress, time.monotonic() - begun), console.width - width - 1)
            bar.update(task, total=progress.total, completed=progress.done, description=text)
            await asyncio.sleep(LIVE_INTERVAL_S)


def _line(progress: Progress, elapsed_s: float) -> str:
    """Return the progress as a line, the most important figures first, without zero retries and cost."""
    rate = progress.done / elapsed_s if elapsed_s else 0.0
    parts = [f"{progress.done}/{progress.total} done in {_clock(elapsed_s)}"]
    if rate and progress.done < progress.total:
        parts.append(f"ETA {_clock((progress.total - progress.done) / rate)}")
    parts += [
        f"{progress.running} running",
        f"{progress.passed} passed",
        f"{progress.failed} failed",
        counted(progress.errored, "error"),
    ]
    if progress.retries:
        parts.append(counted(progress.retries, "retry", "retries"))
    if progress.cost_usd:
        parts.append(f"${progress.cost_usd:.2f}")
    parts.append(f"{rate:.1f}/s")
    return ", ".join(parts)


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
