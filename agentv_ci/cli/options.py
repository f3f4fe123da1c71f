"""Options that several commands have."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeVar

import click

from agentv_ci.contracts.report import ShardRecord

F = TypeVar("F", bound=Callable[..., object])

targets_option = click.option(
    "--targets",
    metavar="FILE",
    help="The targets file; default: targets.yaml or .agentv/targets.yaml beside the eval file or above it.",
)
target_option = click.option("--target", metavar="NAME", help="Target of all cases; 'default' means no override.")
eval_id_option = click.option(
    "--eval-id", "eval_ids", metavar="ID", multiple=True, help="Only this case; globs; may be given again."
)
form_option = click.option(
    "--output-format", "form", type=click.Choice(["jsonl", "yaml"]), default="jsonl", show_default=True
)
junit_option = click.option("--junit", metavar="FILE", help="Write JUnit XML too.")
verbose_option = click.option(
    "--verbose", is_flag=True, help="Tell every question, retry and verdict on standard error."
)
workers_option = click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Cases at once (default: 1, in order, one at a time; more run in parallel and end in any order). "
    "Overrides the targets' own `workers`.",
)


class ShardType(click.ParamType[ShardRecord]):
    """`I/N`: the I-th of N parts."""

    name = "I/N"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> ShardRecord:
        """Return the part; says what is wrong with anything else."""
        found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", str(value))
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            self.fail(f"{value!r} is not I/N with I from 1 to N, such as 2/4", param, ctx)
        return ShardRecord(index=int(found[1]), total=int(found[2]))


class Range(click.FloatRange):
    """A range of numbers; NaN, which compares with nothing, is in none."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; click says what is wrong with another one."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


SHARE = Range(0, 1)


def gate_options(command: F) -> F:
    """What moves the gate; flags override the eval file."""
    options = (
        click.option("--threshold", type=SHARE, metavar="X", help="Score at which a case passes (default: 0.8)."),
        click.option("--min-pass-rate", type=SHARE, metavar="X", help="Gate: least share of graded cases that pass."),
        click.option("--min-mean-score", type=SHARE, metavar="X", help="Gate: least mean score."),
        click.option("--max-errors", type=click.IntRange(min=0), metavar="N", help="Gate: most errors."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def color_option(command: F) -> F:
    """`--color` is accepted before and after the command."""

    def set_color(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
        from agentv_ci.cli import wants_color

        if value is not None:
            ctx.color = wants_color(value)

    return click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        callback=set_color,
        help="When to use colours.",
    )(command)
