"""Standard error while a run goes on: its lines, failures as they happen, and progress.

On a terminal, the progress is live.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from agentv_ci.analysis.cases.trial_outcomes import trial_outcome
from agentv_ci.base.text import counted, on_one_line, without_commands
from agentv_ci.cli.console import ignoring_lost_output, show_line
from agentv_ci.contracts.results import ResultRow
from agentv_ci.execute.run_services import Progress
from agentv_ci.report.lines import Line, Style
from agentv_ci.report.view import wrong_of
from agentv_ci.report.wrapping import clipped, columns

if TYPE_CHECKING:
    from agentv_ci.cli.live_area import LiveArea

PLAIN_INTERVAL_S = 5.0
LIVE_INTERVAL_S = 0.1
WIDEST_BAR, NARROWEST_BAR = 40, 8
FAILED: dict[str, Style] = {"fail": "bad", "borderline": "warn", "error": "bad"}
"""The style of a row that did not pass."""


class Screen:
    """Shows lines of a run and its progress.

    `judges`: the run is about judges, and answers may well be wrong.
    """

    def __init__(self, *, judges: bool) -> None:
        self._judges = judges
        # The action installs no rich: its steps have no terminal.
        self._is_live = (
            sys.stderr is not None and _takes_commands() and find_spec("rich") is not None
        )
        self._area: LiveArea | None = None
        """What changes on the terminal, while progress is live."""
        self._tasks: list[asyncio.Task[None]] = []
        self._progress = Progress(0)

    def line(self, text: str, style: str = "plain") -> None:
        """Show a line, above the live progress."""
        with ignoring_lost_output():
            if self._area is None:
                show_line(text, style, err=True)
            else:
                self._area.print([(without_commands(text), style)])

    def row(self, row: ResultRow) -> None:
        """On a terminal, show why a trial did not pass."""
        is_failure = row.verdict != "pass" and not row.is_unknown and not self._judges
        if self._area is not None and is_failure:
            name = self._progress.name(row.case_key, row.trial, trials=row.trials)
            mark = "✗" if self._area.is_unicode else "x"
            parts = failure_line(row, name, self._area.width, mark=mark).parts
            with ignoring_lost_output():
                self._area.print(parts)

    def watch(self, progress: Progress) -> None:
        """Show the progress until `close`."""
        self._progress = progress
        show = self._live if self._is_live else self._plain
        self._tasks.append(asyncio.get_running_loop().create_task(show(progress)))

    async def close(self) -> None:
        """Remove the live progress."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _plain(self, progress: Progress) -> None:
        begun = time.monotonic()
        while True:
            await asyncio.sleep(PLAIN_INTERVAL_S)
            with contextlib.suppress(OSError):
                click.echo(plain_line(progress, time.monotonic() - begun), err=True)

    async def _live(self, progress: Progress) -> None:
        from agentv_ci.cli.live_area import live_area  # the action installs no rich

        begun = time.monotonic()
        context = click.get_current_context(silent=True)
        no_color = context is not None and context.color is False
        with live_area(no_color=no_color) as area:
            self._area = area
            try:
                while True:
                    elapsed_s = time.monotonic() - begun
                    lines = live_lines(
                        progress, elapsed_s, area.width, solid=area.is_unicode, judges=self._judges
                    )
                    area.show(lines)
                    await asyncio.sleep(LIVE_INTERVAL_S)
            finally:
                self._area = None


@asynccontextmanager
async def show_progress(*, judges: bool = False) -> AsyncIterator[Screen]:
    """Show what a run says on standard error until it ends."""
    screen = Screen(judges=judges)
    try:
        yield screen
    finally:
        await screen.close()


def _takes_commands() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def plain_line(progress: Progress, elapsed_s: float) -> str:
    """Return the progress as a line of a log, without zero retries and cost."""
    rate = progress.done / elapsed_s if elapsed_s else 0.0
    parts = [f"{progress.done}/{progress.total} done in {_clock(elapsed_s)}"]
    if eta := _eta(progress, rate):
        parts.append(f"ETA {eta}")
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


def live_lines(
    progress: Progress, elapsed_s: float, width: int, *, solid: bool, judges: bool = False
) -> list[Line]:
    """Return the progress for a terminal: a bar with figures, and what runs now.

    Nothing is cut in the middle.
    """
    room = width - 1  # some terminals wrap a full line
    rate = progress.done / elapsed_s if elapsed_s else 0.0
    eta = _eta(progress, rate)
    # Each figure with its importance: a narrow terminal shows the first ones.
    figures: list[tuple[int, str, Style]] = [
        (0, f"{progress.done}/{progress.total}", "strong"),
        (4, f"{progress.passed} passed", "plain"),
        (1, f"{progress.failed} failed" if progress.failed else "", "plain" if judges else "bad"),
        (2, counted(progress.errored, "error") if progress.errored else "", "bad"),
        (7, counted(progress.retries, "retry", "retries") if progress.retries else "", "plain"),
        (5, f"${progress.cost_usd:.2f}" if progress.cost_usd else "", "plain"),
        (3, _clock(elapsed_s), "plain"),
        (6, f"ETA {eta}" if eta else "", "plain"),
        (8, f"{rate:.1f}/s" if rate else "", "faint"),
    ]
    most, used = -1, 0
    for importance, text, _ in sorted(figures):
        if text:
            used += len(text) + 2
        if used > room + 2:
            break
        most = importance
    shown = [(text, style) for importance, text, style in figures if text and importance <= most]
    left = room - sum(len(text) + 2 for text, _ in shown)
    style: Style = "bad" if progress.errored or (progress.failed and not judges) else "bar"
    parts: list[tuple[str, Style]] = []
    if left >= NARROWEST_BAR:
        parts += _bar(progress, min(WIDEST_BAR, left), style, solid=solid)
    for text, style in shown:
        parts += [(text, style), ("  ", "plain")]
    lines = [Line.of(*parts[:-1])]
    if now := _now([*progress.now.values()], room):
        lines.append(Line.of((now, "faint")))
    return lines


def _bar(progress: Progress, width: int, style: Style, *, solid: bool) -> list[tuple[str, Style]]:
    done = width * progress.done // progress.total if progress.total else width
    mark, rest = ("━", "─") if solid else ("#", "-")
    return [(mark * done, style), (rest * (width - done), "faint"), ("  ", "plain")]


def _now(labels: Sequence[str], room: int) -> str:
    """Return as many labels as fit, the oldest first."""
    texts = [""]
    for place in range(1, len(labels) + 1):
        more = f" and {len(labels) - place} more" if place < len(labels) else ""
        texts.append(f"now: {on_one_line(', '.join(labels[:place]))}{more}")
        if columns(texts[-1]) > room:
            break
    fitting = [text for text in texts[1:] if columns(text) <= room]
    return fitting[-1] if fitting else clipped(texts[-1], room)


def failure_line(row: ResultRow, name: str, width: int, *, mark: str) -> Line:
    """Return why a trial of this name did not pass, cut to the width of a terminal."""
    outcome, style = trial_outcome(row), FAILED[row.verdict]
    score = "error" if row.verdict == "error" else f"{row.score:.2f}"
    wrong = wrong_of(outcome.findings)
    reason = outcome.summary
    if wrong and row.verdict != "error":
        reason = f"{wrong[0].name}: {wrong[0].text}"
    before = f"{mark} {on_one_line(name)} {score} "
    return Line.of(
        (f"{mark} ", style),
        (on_one_line(name), "strong"),
        (f" {score} ", style),
        (clipped(on_one_line(reason), width - columns(before)), "plain"),
    )


def _eta(progress: Progress, rate: float) -> str | None:
    if not rate or progress.done >= progress.total:
        return None
    return _clock((progress.total - progress.done) / rate)


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
