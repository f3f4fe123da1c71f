"""Groups of commands that load when they are called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import click

from agentv_ci.base.text import did_you_mean
from agentv_ci.cli.exit import ReaderHasGone


class LazyGroup(click.Group):
    """A group whose commands are modules of this package, imported when they are called."""

    def __init__(
        self,
        *,
        summaries: Mapping[str, str],
        aliases: Mapping[str, str] = MappingProxyType({}),
        prefix: str = "",
        **settings: Any,  # noqa: ANN401  # those of click
    ) -> None:
        """Take what each command does in a line, other names of commands, and how modules begin."""
        super().__init__(**settings)
        self._summaries = summaries
        self._aliases = aliases
        self._prefix = prefix

    def invoke(self, ctx: click.Context) -> object:
        """Run a command.

        Click itself would turn a broken pipe into exit code 1, which means "not passed".
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderHasGone from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which users need them."""
        return list(self._summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        name = self._aliases.get(cmd_name, cmd_name)
        if name not in self._summaries:
            return None
        module = importlib.import_module(
            f"agentv_ci.cli.{self._prefix}{name.replace('-', '_')}_command"
        )
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; for an unknown one, suggest the nearest."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(
                error.message.rstrip(".") + did_you_mean(args[0], self._summaries), ctx
            ) from error
