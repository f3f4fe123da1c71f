"""What `compile --power` prints."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click

from agentv_ci.app.documents.commit_trees import CommitTrees
from agentv_ci.app.results.power import power_of_experiment, power_of_results
from agentv_ci.app.run.experiment import compile_experiment
from agentv_ci.base.text import counted
from agentv_ci.cli.listing import estimated_dollars, show_table, time_text
from agentv_ci.cli.selection_options import SelectionOptions
from agentv_ci.contracts.command_output import PlannedTrials, PowerTable


def show_power(
    file: str,
    results: Sequence[str],
    selection: SelectionOptions,
    workers: int | None,
    form: Literal["text", "json"],
) -> None:
    """Print which change each number of trials shows; `file` is an experiment or results."""
    table = _table(file, results, selection, workers)
    if form == "json":
        click.echo(table.model_dump_json(indent=2))
        return
    size = f"{counted(table.cases, 'case')}, {counted(table.arms, 'arm')}"
    click.echo(f"{table.metric}: {size}; {table.basis}")
    head = ("", "trials per case", "trials", "shows a change of", "cost", "time")
    show_table([head, *(_row(each, table) for each in table.rows)], left=1)
    click.echo(_needed(table))
    click.echo(_certainty(table))


def _table(
    file: str, results: Sequence[str], selection: SelectionOptions, workers: int | None
) -> PowerTable:
    cwd = Path.cwd()
    paths = list(map(cwd.joinpath, results))
    # As in `report`: results without a suffix are JSON lines.
    if Path(file).suffix in (".jsonl", ".ndjson", ""):
        return power_of_results([cwd / file, *paths])
    with CommitTrees(os.environ) as trees:
        experiment = compile_experiment(file, selection.of(()), cwd=cwd, trees=trees)
        return power_of_experiment(experiment, paths, workers=workers)


def _row(each: PlannedTrials, table: PowerTable) -> Sequence[str]:
    mark = ""
    if each.trials_per_case == table.planned:
        mark = "planned"
    elif each.trials_per_case == table.needed:
        mark = "needed"
    time = "-" if each.seconds is None else time_text(each.seconds)
    numbers = (f"{each.trials_per_case:,}", f"{each.trials:,}", _change(each.detectable, table))
    return mark, *numbers, estimated_dollars(each.cost_usd), time


def _change(change: float | None, table: PowerTable) -> str:
    if change is None:
        return "none"
    return f"{change:.0%}" if table.is_share else f"{change:.3f}"


def _needed(table: PowerTable) -> str:
    change = _change(table.detect, table)
    if table.needed is None:
        cure = "add cases, since trials do not replace them"
        return f"no number of trials shows a change of {change}: {cure}"
    trials = f"{counted(table.needed, 'trial')} per case and arm"
    return f"{trials} show a change of {change} with power {table.power:g}"


def _certainty(table: PowerTable) -> str:
    early = "; with `stop`, most experiments need fewer" if table.stops_early else ""
    return f"approximate, at alpha {table.alpha:.2g} for the primary metric{early}"
