"""`agentv-ci schema`."""

from __future__ import annotations

import click

from agentv_ci.base.text import did_you_mean, listed
from agentv_ci.cli.console import show_warning
from agentv_ci.cli.options import color_option
from agentv_ci.errors import PASSED, UsageError
from agentv_ci.jsonschema.schemas import TITLES, SchemaName, schema_id, text


@click.command("schema")
@click.argument("name", required=False)
@click.option(
    "--with-plugins",
    is_flag=True,
    help="Add the settings of installed plugins (eval-v2 and targets-v2).",
)
@color_option
def command(name: str | None, *, with_plugins: bool) -> int:
    """List the published JSON Schemas, or print one.

    \b
    Examples:
      agentv-ci schema
      agentv-ci schema eval-v2 > eval-v2.schema.json
      agentv-ci schema eval-v2 --with-plugins > .vscode/eval-v2.schema.json
    """
    if name is None:
        if with_plugins:
            raise UsageError(
                "--with-plugins needs the name of a schema",
                hint="write: schema eval-v2 --with-plugins",
            )
        for known, title in TITLES.items():
            click.echo(f"{known:<16}  {title:<30}  {schema_id(known)}")
        return PASSED
    for known in TITLES:
        if known == name:
            click.echo(_with_plugins(known) if with_plugins else text(known), nl=False)
            return PASSED
    raise UsageError(
        f"unknown schema '{name}'{did_you_mean(name, TITLES)}; available: {listed(TITLES)}"
    )


def _with_plugins(name: SchemaName) -> str:
    from agentv_ci.app.documents.schema import PLUGINS, schema_with_plugins

    if name not in PLUGINS:
        raise UsageError(f"--with-plugins is for {listed(PLUGINS)}, not {name}")
    schema, problems = schema_with_plugins(name)
    for each in problems:
        show_warning(each)
    return schema
