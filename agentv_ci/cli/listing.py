"""Tables of a plan: what would run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

from agentv_ci.base.text import counted
from agentv_ci.base.text import dollars as amount_text
from agentv_ci.cli.console import one_line

if TYPE_CHECKING:
    from agentv_ci.contracts.command_output import PlannedCases  # a run needs none


def show_cases(planned: PlannedCases, form: Literal["text", "json"]) -> None:
    """Print what would run, a case on a line."""
    if form == "json":
        click.echo(planned.model_dump_json(indent=2, exclude_none=True))
        return
    rows = [
        (
            f"{each.path}:{each.line}",
            each.id,
            each.target,
            str(each.trials) if each.skip is None else "skipped",
        )
        for each in planned.cases
    ]
    show_table([("place", "case", "target", "trials"), *rows], left=3)
    trials = sum(each.trials for each in planned.cases)
    skipped = [each for each in planned.cases if each.skip is not None]
    for each in skipped:
        click.echo(f"skipped: {one_line(each.id)}: {one_line(each.skip or '')}")
    more = f", {len(skipped)} skipped" if skipped else ""
    click.echo(f"{counted(len(rows), 'case')}, {counted(trials, 'trial')}{more}")


def show_table(rows: Sequence[Sequence[str]], *, left: int) -> None:
    """Print rows in columns, of which the first `left` are aligned to the left."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = [
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo("  ".join(padded).rstrip())


def dollars(cost: float | None) -> str:
    """Return an estimated cost."""
    if cost is None:
        return "-"
    return f"${cost:,.2f}" if cost >= 1 else amount_text(cost)


def time_text(seconds: float) -> str:
    """Return an estimated time."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
