"""`agentv-ci schema`."""

from __future__ import annotations

import click

from agentv_ci.cli.options import color_option
from agentv_ci.errors import PASSED, UsageError
from agentv_ci.jsonschema.schemas import TITLES, schema_id, text
from agentv_ci.text import did_you_mean, listed


@click.command("schema")
@click.argument("name", required=False)
@color_option
def command(name: str | None) -> int:
    """List the published JSON Schemas, or print one.

    \b
    Examples:
      agentv-ci schema
      agentv-ci schema eval-v2 > eval-v2.schema.json
    """
    if name is None:
        for known, title in TITLES.items():
            click.echo(f"{known:<16}  {title:<30}  {schema_id(known)}")
        return PASSED
    for known in TITLES:
        if known == name:
            click.echo(text(known), nl=False)
            return PASSED
    raise UsageError(f"unknown schema '{name}'{did_you_mean(name, TITLES)}; available: {listed(TITLES)}")
