"""Tables of a plan: what would run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

from agentv_ci.base.text import counted, dollars
from agentv_ci.cli.console import one_line

if TYPE_CHECKING:
    from agentv_ci.contracts.command_output import PlannedCases  # a run needs none


def show_cases(planned: PlannedCases, form: Literal["text", "json"]) -> None:
    """Print what would run, a case on a line."""
    if form == "json":
        click.echo(planned.model_dump_json(indent=2, exclude_none=True))
        return
    rows: list[tuple[str, ...]] = []
    for case in planned.cases:
        trials = str(case.trials) if case.skip is None else "skipped"
        rows.append((f"{case.path}:{case.line}", case.id, case.target, trials))
    show_table([("place", "case", "target", "trials"), *rows], left=3)
    total = sum(case.trials for case in planned.cases)
    skipped = [case for case in planned.cases if case.skip is not None]
    for case in skipped:
        click.echo(f"skipped: {one_line(case.id)}: {one_line(case.skip or '')}")
    more = f", {len(skipped)} skipped" if skipped else ""
    click.echo(f"{counted(len(rows), 'case')}, {counted(total, 'trial')}{more}")


def show_table(rows: Sequence[Sequence[str]], *, left: int) -> None:
    """Print rows in columns, of which the first `left` are aligned to the left."""
    cells = [list(map(one_line, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded: list[str] = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            padded.append(cell.ljust(width) if column < left else cell.rjust(width))
        click.echo("  ".join(padded).rstrip())


def estimated_dollars(cost: float | None) -> str:
    """Return an estimated cost."""
    if cost is None:
        return "-"
    if cost < 1:
        return dollars(cost)
    return f"${cost:,.2f}"


def time_text(seconds: float) -> str:
    """Return an estimated time."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
