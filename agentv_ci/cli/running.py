"""What commands that run something share: signals and what they show."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from agentv_ci.app.run.environment import system_environment
from agentv_ci.app.run.files import RunFiles
from agentv_ci.base.process import kill_all
from agentv_ci.cli.exit import interruptible
from agentv_ci.cli.options import Verbosity
from agentv_ci.cli.progress import show_progress
from agentv_ci.errors import INTERRUPTED, Interrupted, UsageError
from agentv_ci.execute.run_services import RunServices, ignore
from agentv_ci.load.files import with_dotenv

T = TypeVar("T")

MANY_FILES = 65_536
TWICE_S = 0.5
"""Signals that come so soon after the first one are the same one."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(
    work: Callable[[RunServices], Awaitable[T]],
    files: RunFiles,
    *,
    dotenv_files: Sequence[Path],
    verbosity: Verbosity,
    judges: bool = False,
) -> T:
    """Do the work of a command until it ends or is interrupted.

    `judges`: it is about judges, not answers.
    """
    environment = system_environment(with_dotenv(os.environ, dotenv_files))
    _allow_connections()
    # The plan stays until the end: the garbage collector need not scan it again and again.
    gc.freeze()

    async def main() -> T:
        _end_on_signals()
        if verbosity.quiet:
            return await work(RunServices(environment))
        async with show_progress(judges=judges) as screen:
            services = RunServices(
                environment,
                log=screen.line if verbosity.verbose else ignore,
                warn=lambda sentence: screen.line(f"warning: {sentence}", "warn"),
                note=screen.line,
                watch=screen.watch,
                tell=screen.row,
            )
            return await work(services)

    try:
        # The loop resets the signal handlers that were set before it.
        with interruptible():
            return asyncio.run(main())
    except (asyncio.CancelledError, KeyboardInterrupt) as error:
        raise Interrupted("interrupted; finished rows are kept") from error
    except OSError as error:
        raise UsageError(
            f"cannot write '{error.filename or files.results}': {error.strerror}"
        ) from error


def _allow_connections() -> None:
    """Raise the limit of open files as far as the system allows.

    Each question under way takes one.
    """
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MANY_FILES if most == resource.RLIM_INFINITY else min(most, MANY_FILES)
    if least < limit:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))


def _end_on_signals() -> None:
    """On Ctrl-C, SIGTERM and a closed terminal, kill children and keep finished rows.

    On a second signal, exit.
    """
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None, "a coroutine runs in a task"
    # Ignored signals stay ignored, as under `nohup` and in background jobs of a shell.
    handled = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]

    def end() -> None:
        for number in handled:
            loop.remove_signal_handler(number)
            signal.signal(number, lambda *_: None)
        # `timeout` of coreutils sends its signal to the process and to its group.
        loop.call_later(TWICE_S, listen_again)
        task.cancel()

    def listen_again() -> None:
        for number in handled:
            signal.signal(number, _end_at_once)

    for number in handled:
        with contextlib.suppress(NotImplementedError):  # Windows has no signal handlers on the loop
            loop.add_signal_handler(number, end)


def _end_at_once(*_: object) -> None:
    kill_all()
    os._exit(INTERRUPTED)
