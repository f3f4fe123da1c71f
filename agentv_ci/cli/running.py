"""What commands share that run something: the environment, progress, the summary at the end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import click

from agentv_ci.app.concluding import RunFiles
from agentv_ci.app.environment import system_environment
from agentv_ci.app.report_files import Outcome
from agentv_ci.app.run import Outside
from agentv_ci.cli.ending import interruptible
from agentv_ci.cli.output import show_error, show_line, show_summary
from agentv_ci.cli.progress import show_progress
from agentv_ci.errors import INTERRUPTED, Interrupted, UsageError
from agentv_ci.load.environment import with_dotenv
from agentv_ci.process import kill_all
from agentv_ci.report.renderers import terminal
from agentv_ci.text import without_commands

T = TypeVar("T")

MANY_FILES = 65_536
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
    environment = system_environment(with_dotenv(os.environ, dotenv_files))

    def log(line: str) -> None:
        with unheard():
            click.echo(without_commands(line), err=True)

    def warn(sentence: str) -> None:
        with unheard():
            show_warning(sentence)

    _allow_connections()
    # The plan stays until the end: nobody need look for circles in it again and again.
    gc.freeze()

    async def main() -> T:
        _end_on_signals()
        async with show_progress(live=not verbose) as watch:
            return await work(Outside(environment, log if verbose else None, warn, log, watch))

    try:
        # The loop forgets whoever listened before it.
        with interruptible():
            return asyncio.run(main())
    except (asyncio.CancelledError, KeyboardInterrupt) as error:
        raise Interrupted("interrupted; finished rows are kept") from error
    except OSError as error:
        raise UsageError(f"cannot write '{error.filename or files.results}': {error.strerror}") from error


def _allow_connections() -> None:
    """Take all the file numbers that the system allows: each question under way has one."""
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY_FILES if most == resource.RLIM_INFINITY else min(most, MANY_FILES)
    if least < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def unheard() -> contextlib.AbstractContextManager[object]:
    """Go on where what is printed reaches nobody: whoever listened has gone, or the disk is full."""
    return contextlib.suppress(OSError)


def show_warning(sentence: str) -> None:
    """Print a sentence that people always see."""
    show_line(f"warning: {sentence}", "warn", err=True)


def _end_on_signals() -> None:
    """Ctrl-C, SIGTERM and a closed terminal end a run in order: children are killed, finished rows are kept.

    A second signal ends it at once.
    """
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None, "a coroutine runs in a task"
    # One that is ignored stays so: `nohup`, and jobs that a shell has put into the background.
    heard = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]

    def end() -> None:
        for number in heard:
            loop.remove_signal_handler(number)
            signal.signal(number, _end_at_once)
        task.cancel()

    for number in heard:
        with contextlib.suppress(NotImplementedError):  # Windows has no signal handlers on the loop
            loop.add_signal_handler(number, end)


def _end_at_once(*_: object) -> None:
    kill_all()
    os._exit(INTERRUPTED)


def show_outcome(outcome: Outcome, written: Mapping[str, Path], cwd: Path) -> None:
    """Print the summary, and where everything lies that was written."""
    show_summary(terminal.render(outcome.report, outcome.cases))
    for name, path in written.items():
        if path in outcome.lost:
            show_line(f"{name}: could not be written", "bad")
        else:
            show_line(f"{name}: {short(path, cwd)}", "plain")
    if outcome.report.stopped == "interrupted":
        with contextlib.suppress(OSError):  # the terminal has gone, which is what ended the run
            show_error("interrupted; finished rows are kept", None)


def short(path: Path, cwd: Path) -> Path:
    """Return a path as people would name it from where they are."""
    return path.relative_to(cwd) if path.is_relative_to(cwd) else path
