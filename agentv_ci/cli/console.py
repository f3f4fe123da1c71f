"""Output to a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import click

from agentv_ci.base.text import without_commands

if TYPE_CHECKING:
    from pathlib import Path

    from agentv_ci.app.documents.compile import Origin
    from agentv_ci.app.run.files import RunOutcome
    from agentv_ci.contracts.diagnostics import Diagnostic
    from agentv_ci.report.lines import Line

COUNT_AFTER_S = 1.0
COUNT_INTERVAL_S = 0.1

COLORS: Mapping[str, str] = {
    "error": "red",
    "warning": "yellow",
    "info": "blue",
    "bad": "red",
    "warn": "yellow",
    "good": "green",
}
STYLES: Mapping[str, Mapping[str, bool | str]] = {
    **{name: {"fg": color} for name, color in COLORS.items()},
    "title": {"bold": True},
    "strong": {"bold": True},
    "faint": {"dim": True},
    "bar": {"fg": "cyan"},
}


def wants_color(choice: str) -> bool | None:
    """Return the color setting for click: True, False, or None to decide by the terminal."""
    if choice != "auto":
        return choice == "always"
    return False if os.environ.get("NO_COLOR") else None


def ignoring_lost_output() -> contextlib.AbstractContextManager[object]:
    """Continue when output cannot be written: the pipe is closed, or the disk is full."""
    return contextlib.suppress(OSError)


def show_diagnostics(diagnostics: Iterable[Diagnostic], *, err: bool) -> None:
    """Print diagnostics, one per line, each followed by its hint."""
    for each in diagnostics:
        place = one_line(f"{each.path}:{each.line}:{each.column}")
        label = each.case or each.target or each.pointer
        about = f" ({one_line(label)})" if label else ""
        severity = click.style(each.severity, fg=COLORS[each.severity])
        click.echo(f"{place}: {severity}: {one_line(each.message)} [{each.rule}]{about}", err=err)
        if each.hint:
            click.echo(f"    {one_line(each.hint)}", err=err)


def show_warnings_of(origin: Origin, more: Iterable[Diagnostic] = ()) -> None:
    """Print the warnings about the documents of a plan, and `more`."""
    show_diagnostics((*origin.warnings, *more), err=True)
    for pattern in origin.unused:
        show_warning(f"no eval document in '{pattern}'")


def one_line(text: str) -> str:
    """Return untrusted text as one line that cannot command a terminal or a runner."""
    return without_commands(text.replace("\n", "\\n"))


def show_error(message: str, hint: str | None) -> None:
    """Print why a command cannot continue."""
    click.echo(f"{click.style('error', fg='red')}: {without_commands(message)}", err=True)
    if hint:
        click.echo(f"    {without_commands(hint)}", err=True)


def show_line(text: str, style: str, *, err: bool = False) -> None:
    """Print a line in a named style, with untrusted text made harmless."""
    click.echo(_styled(text, style), err=err)


def show_warning(sentence: str) -> None:
    """Print a warning on standard error."""
    show_line(f"warning: {sentence}", "warn", err=True)


def show_annotation(reason: str, *, level: Literal["error", "warning"] = "error") -> None:
    """Print why a step on GitHub failed, or may mislead, as an annotation.

    It shows outside the log, too.
    """
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from agentv_ci.base.workflow_commands import (
            workflow_command,
        )  # contracts take long to build

        click.echo(workflow_command(level, without_commands(reason), {"title": "agentv-ci"}))


def show_summary(lines: Iterable[Line]) -> None:
    """Print a summary, with solid bars on a terminal that can show them."""
    # Standard output is None when it was closed.
    out = sys.stdout if sys.stdout is not None and sys.stdout.isatty() else None
    solid = out is not None and out.encoding.lower() == "utf-8"
    for line in lines:
        parts = line.parts or ((line.text, line.style),)
        shown = ""
        for part, style in parts:
            text = part.replace("#", "█") if solid and style == "bar" else part
            shown += _styled(without_commands(text), style)
        click.echo(shown.rstrip())


def show_outcome(
    outcome: RunOutcome, written: Mapping[str, Path], cwd: Path, *, quiet: bool = False
) -> None:
    """Print the summary and the paths of all files written; with `quiet`, only the verdict."""
    from agentv_ci.report.renderers import terminal
    from agentv_ci.report.view import RunView

    run = RunView(outcome.report, outcome.cases)
    if quiet:
        show_summary([terminal.verdict(run)])
        written = {}
    else:
        show_summary(terminal.render(run))
    for name, path in written.items():
        if path in outcome.lost:
            show_line(f"{name}: could not be written", "bad")
        else:
            show_line(f"{name}: {short(path, cwd)}", "plain")
    if outcome.report.stopped == "interrupted":
        with ignoring_lost_output():  # a closed terminal may be what ended the run
            show_error("interrupted; finished rows are kept", None)


def short(path: Path, cwd: Path) -> Path:
    """Return a path relative to the working directory if it is inside."""
    if not path.is_relative_to(cwd):
        return path
    return path.relative_to(cwd)


def _styled(text: str, style: str) -> str:
    text = one_line(text)
    if not text or style not in STYLES:
        return text
    return click.style(text, **STYLES[style])  # type: ignore[arg-type]  # by name


@contextlib.contextmanager
def show_count(noun: str) -> Iterator[Callable[[int], None]]:
    """On a terminal, show a transient count of what is done, after a moment."""
    begun = last = time.monotonic()

    def watch(number: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - begun > COUNT_AFTER_S and now - last > COUNT_INTERVAL_S:
            last = now
            click.echo(f"\r{number:,} {noun}", nl=False, err=True)

    if not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        yield watch
    finally:
        if last != begun:
            click.echo("\r\x1b[K", nl=False, err=True)
