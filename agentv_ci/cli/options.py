"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

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
