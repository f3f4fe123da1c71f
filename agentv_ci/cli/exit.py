"""How a command ends: its exit code, and the error it prints."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

import click

from agentv_ci.cli.console import show_diagnostics, show_error
from agentv_ci.errors import BUG, INFRASTRUCTURE, INTERRUPTED, INVALID, CannotGoOn, InvalidInput


class ReaderHasGone(Exception):
    """The reader of standard output has closed the pipe."""


class Ended(NamedTuple):
    """How a command ended."""

    exit_code: int
    error: Exception | None = None
    """Why it could not finish."""

    @property
    def reason(self) -> str | None:
        """The error as a sentence."""
        match self.error:
            case None:
                return "interrupted" if self.exit_code == INTERRUPTED else None
            case CannotGoOn() as error:
                return error.message
            case click.ClickException() as error:
                return error.format_message()
            case error:
                return f"{type(error).__name__}: {error}"


def end(work: Callable[[], object]) -> Ended:
    """Do the work of a command; print every exception and turn it into an exit code."""
    try:
        result = work()
        return Ended(result if isinstance(result, int) else 0)
    except (click.exceptions.Abort, KeyboardInterrupt):
        show_error("interrupted", None)
        return Ended(INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:
        # Its message is the help.
        click.echo(error.format_message(), err=True)
        return Ended(INVALID, error)
    except click.ClickException as error:
        message = error.format_message()
        hint = None
        if isinstance(error, click.UsageError) and error.ctx is not None:
            hint = f"see `{error.ctx.command_path} --help`"
        show_error(message[:1].lower() + message[1:].rstrip("."), hint)
        return Ended(INVALID, error)
    except InvalidInput as error:
        show_diagnostics(error.diagnostics, err=True)
        show_error(error.message, None)
        return Ended(error.exit_code, error)
    except CannotGoOn as error:
        show_error(error.message, error.hint)
        return Ended(error.exit_code, error)
    except ReaderHasGone as error:
        _give_up_stdout()
        return Ended(141, error)
    except OSError as error:
        # A full disk or a closed terminal is not a bug.
        is_of_stdout = error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "cannot write to standard output" if is_of_stdout else "cannot continue"
        _give_up_stdout()
        with contextlib.suppress(OSError):
            show_error(f"{what}: {error}", None)
        return Ended(INFRASTRUCTURE, error)
    except Exception as error:  # noqa: BLE001  # the last resort
        import traceback

        show_error("this is a bug in agentv-ci; please report it with the traceback below", None)
        click.echo(traceback.format_exc(), err=True)
        return Ended(BUG, error)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, unless it is ignored; does nothing outside the main thread."""
    before = signal.getsignal(signal.SIGTERM)
    if (
        before in (signal.SIG_IGN, None)
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _give_up_stdout() -> None:
    """Discard buffered output.

    Otherwise the interpreter retries at exit and changes the exit code.
    """
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
