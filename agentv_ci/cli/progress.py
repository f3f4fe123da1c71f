"""How far a run is: a live bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import click

from agentv_ci.execute.run import Progress
from agentv_ci.report.wrapping import clipped
from agentv_ci.text import counted

PLAIN_INTERVAL_S = 5.0
LIVE_INTERVAL_S = 0.1
WIDEST_BAR = 40
FIGURES_COLUMNS = 75
"""What figures of a small run take; the bar has the rest of the line."""


@asynccontextmanager
async def show_progress(*, live: bool) -> AsyncIterator[Callable[[Progress], None]]:
    """Show progress on standard error until the run ends; yields what takes the progress to watch."""
    show = _live if live and sys.stderr is not None and _takes_commands() else _plain
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
    # One text, cut where the line ends: columns of their own would all give way a little.
    columns = (*([BarColumn(bar_width=width)] if width else []), TextColumn("{task.description}", markup=False))
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=progress.total)
        while True:
            text = clipped(_line(progress, time.monotonic() - begun), console.width - width - 1)
            bar.update(task, total=progress.total, completed=progress.done, description=text)
            await asyncio.sleep(LIVE_INTERVAL_S)


def _line(progress: Progress, elapsed_s: float) -> str:
    """What there is to say, the most important first: what nobody has spent or repeated is left out."""
    rate = progress.done / elapsed_s if elapsed_s else 0.0
    said = [f"{progress.done}/{progress.total} done in {_clock(elapsed_s)}"]
    if rate and progress.done < progress.total:
        said.append(f"ETA {_clock((progress.total - progress.done) / rate)}")
    said += [
        f"{progress.running} running",
        f"{progress.passed} passed",
        f"{progress.failed} failed",
        counted(progress.errored, "error"),
    ]
    if progress.retries:
        said.append(f"{progress.retries} {'retry' if progress.retries == 1 else 'retries'}")
    if progress.cost_usd:
        said.append(f"${progress.cost_usd:.2f}")
    said.append(f"{rate:.1f}/s")
    return ", ".join(said)


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
