"""How far a run is: a live bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import click

from agentv_ci.execute.run import Progress
from agentv_ci.suggestions import counted

PLAIN_INTERVAL_S = 5.0
LIVE_INTERVAL_S = 0.1


@asynccontextmanager
async def show_progress(*, live: bool) -> AsyncIterator[Callable[[Progress], None]]:
    """Show progress on standard error until the run ends; yields what takes the progress to watch."""
    show = _live if live and sys.stderr is not None and sys.stderr.isatty() else _plain
    tasks: list[asyncio.Task[None]] = []

    def watch(progress: Progress) -> None:
        tasks.append(asyncio.get_running_loop().create_task(show(progress)))

    try:
        yield watch
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _plain(progress: Progress) -> None:
    begun = time.monotonic()
    while True:
        await asyncio.sleep(PLAIN_INTERVAL_S)
        with contextlib.suppress(OSError):
            click.echo(_line(progress, time.monotonic() - begun), err=True)


async def _live(progress: Progress) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    begun = time.monotonic()
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    context = click.get_current_context(silent=True)
    console = Console(stderr=True, no_color=context is not None and context.color is False)
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=progress.total)
        while True:
            bar.update(task, completed=progress.done, description=_figures(progress, time.monotonic() - begun))
            await asyncio.sleep(LIVE_INTERVAL_S)


def _line(progress: Progress, elapsed_s: float) -> str:
    return f"{progress.done}/{progress.total} done, {_figures(progress, elapsed_s)}"


def _figures(progress: Progress, elapsed_s: float) -> str:
    """What there is to say: what nobody has spent or repeated is left out."""
    rate = progress.done / elapsed_s if elapsed_s else 0.0
    said = [
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
    if rate and progress.done < progress.total:
        said.append(f"ETA {_clock((progress.total - progress.done) / rate)}")
    return ", ".join(said)


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
