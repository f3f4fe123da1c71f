"""`agentv-ci mcp`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click

from agentv_ci.cli.defaults import repository
from agentv_ci.cli.options import Range, color_option
from agentv_ci.errors import PASSED, UsageError


@click.command("mcp")
@click.option(
    "--run-budget",
    type=Range(min=0),
    metavar="USD",
    help="Offer the tool `run`, too; all runs of this server together may cost USD.",
)
@color_option
def command(run_budget: float | None) -> int:
    """Serve tools for agents in this repository: a Model Context Protocol server on standard input and output.

    Agents can validate documents, look up rules, list, compile and estimate cases, and read reports and comparisons.
    They see files of the repository only, and no secrets. Nothing runs without --run-budget. Needs the extra `mcp`.

    \b
    Examples:
      agentv-ci mcp
      agentv-ci mcp --run-budget 0.50
    """
    try:
        from agentv_ci.mcp_server.server import build_server
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the server needs the package '{error.name}'",
            hint="python -m pip install mcp",
        ) from error
    from agentv_ci.mcp_server.repository import Repository

    served = Repository(repository(Path.cwd()), dict(os.environ))
    asyncio.run(build_server(served, run_budget).run_stdio_async())
    return PASSED
