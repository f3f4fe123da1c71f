"""`agentv-ci github base`: read from the base branch what counts for a pull request."""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from agentv_ci.app.run.environment import system_environment
from agentv_ci.cli.console import show_line
from agentv_ci.cli.options import Command, takes
from agentv_ci.cli.step_options import action_input
from agentv_ci.errors import PASSED
from agentv_ci.github.base_step import read_base_files
from agentv_ci.github.publishing import outputs
from agentv_ci.github.workflow import read_workflow


@dataclass(frozen=True, kw_only=True)
class BaseOptions:
    """Options of `github base`."""

    baseline: str | None = action_input(
        "--baseline", metavar="FILE", help="Read this baseline, too."
    )


@click.command("base", cls=Command)
@takes(BaseOptions)
def command(options: BaseOptions) -> int:
    """Read the quarantine, the baseline and the tests of the base branch, for `github run` of a pull request.

    A pull request may have edited its own. Sets the step's outputs `quarantine` and `baseline`, the paths of the files
    that count: a baseline that the base branch does not have is the one given, and what GitHub refuses to give is left
    out. `base_tree` is a folder with the files of the base branch, `base_problem` the reason why there is none. Needs
    GITHUB_TOKEN with `contents: read`.

    \b
    Examples:
      agentv-ci github base
      agentv-ci github base --baseline .agentv/baseline.json
    """
    workflow = read_workflow(os.environ)
    if workflow is None or not workflow.is_of_change:
        show_line(
            "not a pull request: the quarantine and the baseline of the checkout count", "plain"
        )
        files: Mapping[str, str] = {}
        if options.baseline:
            files = {"baseline": options.baseline}
    else:
        folder = Path(
            tempfile.mkdtemp(prefix="agentv-base-", dir=os.environ.get("RUNNER_TEMP") or None)
        )
        reading = read_base_files(
            folder,
            workflow,
            options.baseline,
            cwd=Path.cwd(),
            environment=system_environment(os.environ),
            say=click.echo,
        )
        files = asyncio.run(reading)
    if path := os.environ.get("GITHUB_OUTPUT"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(outputs(files, f"agentv_{secrets.token_hex(16)}"))
    return PASSED
