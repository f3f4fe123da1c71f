"""`agentv-ci shards`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import click

from agentv_ci.app.documents.compile import compile_paths
from agentv_ci.app.run.shards import Sharding, plan_shards
from agentv_ci.base.text import counted
from agentv_ci.cli.console import show_diagnostics
from agentv_ci.cli.listing import show_table
from agentv_ci.cli.options import (
    FILE,
    Command,
    Count,
    Range,
    option,
    part,
    path_in,
    paths_argument,
    takes,
    workers_option,
)
from agentv_ci.cli.selection_options import SelectionOptions
from agentv_ci.compile.overrides import Overrides
from agentv_ci.contracts.command_output import PlannedShard, PlannedShards
from agentv_ci.errors import PASSED

MOST_JOBS = 256
"""Jobs of a matrix in GitHub Actions."""


@dataclass(frozen=True, kw_only=True)
class ShardsOptions:
    """Options of `shards`."""

    paths: tuple[str, ...] = paths_argument()
    most: int = option(
        "--max",
        type=Count(min=1),
        default=MOST_JOBS,
        show_default=True,
        help="Split into at most N shards.",
    )
    target_minutes: float | None = option(
        "--target-minutes",
        type=Range(min=0, min_open=True),
        metavar="M",
        help="Take only as many shards as it needs for each to take about M minutes.",
    )
    balance: str | None = option(
        "--balance",
        type=FILE,
        help="Make shards take equally long, by the durations in these results.",
    )
    workers: int | None = workers_option(
        help="Estimate shards that run N cases in parallel (default: as in targets)."
    )
    repeat: int | None = option("--repeat", type=Count(min=1), help="Count N trials of every case.")
    selection: SelectionOptions = field(metadata=part(SelectionOptions))
    form: Literal["text", "json", "github"] = option(
        "--format",
        type=click.Choice(["text", "json", "github"]),
        default="text",
        show_default=True,
        help="Print text for people, JSON for programs, or outputs of a step in GitHub Actions.",
    )


@click.command("shards", cls=Command)
@takes(ShardsOptions)
def command(options: ShardsOptions) -> int:
    """Split eval files, folders, globs or one plan into shards for several machines, and estimate their time.

    PATH defaults to evals/. Run each shard with `eval --shard` and the same --balance, and merge the results with
    `report --expect-shards`. With --format github, `total` is the number of shards and `shards` the list 1, 2, … for
    a matrix.

    \b
    Examples:
      agentv-ci shards evals/ --max 20
      agentv-ci shards plan.json --max 20 --balance main.jsonl --target-minutes 10 --format json
      agentv-ci shards evals/ --max 20 --format github
    """
    cwd = Path.cwd()
    compiled = compile_paths(options.selection.of(options.paths), cwd=cwd)
    show_diagnostics(compiled.origin.warnings, err=True)
    balance = path_in(cwd, options.balance)
    sharding = Sharding(options.most, options.target_minutes, balance, options.workers)
    planned = plan_shards(compiled, Overrides(repeat=options.repeat), sharding)
    match options.form:
        case "json":
            click.echo(planned.model_dump_json(indent=2))
        case "github":
            total = len(planned.shards)
            click.echo(f"shards={json.dumps([*range(1, total + 1)])}\ntotal={total}")
        case "text":
            _show(planned)
    return PASSED


def _row(shard: PlannedShard) -> Sequence[str]:
    return shard.shard, str(shard.cases), str(shard.trials), f"{shard.minutes:.1f}"


def _show(planned: PlannedShards) -> None:
    head = ("shard", "cases", "trials", "minutes")
    show_table([head, *map(_row, planned.shards)], left=1)
    basis = {
        "durations": "the durations of an earlier run",
        "sizes": "the sizes of questions and the kinds of targets",
    }
    shards = counted(len(planned.shards), "shard")
    longest = f"the longest about {planned.minutes:.1f} min"
    click.echo(f"{shards}, {longest}, estimated from {basis[planned.basis]}")
