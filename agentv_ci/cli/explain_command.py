"""`agentv-ci explain`."""

from __future__ import annotations

import click

from agentv_ci.app.documents.explain import explain
from agentv_ci.cli.console import show_line
from agentv_ci.cli.options import Command, color_option
from agentv_ci.errors import PASSED


@click.command("explain", cls=Command)
@click.argument("rule")
@color_option
def command(rule: str) -> int:
    """Say what a rule of `validate` or `prove` means, with an example of what breaks it and what does not.

    \b
    Examples:
      agentv-ci explain AV312
    """
    known = explain(rule.upper())
    fixed = ", which cannot be changed" if known.fixed else ""
    show_line(f"{known.rule} {known.name} ({known.severity}{fixed}): {known.summary}", "strong")
    click.echo(f"\n{known.text}")
    return PASSED
