"""`agentv-ci github issue`: keep one issue about shifts of scores."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

import click

from agentv_ci.app.run.environment import system_environment
from agentv_ci.base.workflow_commands import annotation_command
from agentv_ci.cli.console import show_line
from agentv_ci.cli.options import FILE, Command, argument, takes
from agentv_ci.contracts.action import Annotation
from agentv_ci.errors import PASSED
from agentv_ci.github.issue import report_shifts
from agentv_ci.github.refusals import NotPublished
from agentv_ci.github.workflow import require_workflow


@dataclass(frozen=True)
class IssueOptions:
    """Options of `github issue`."""

    health: str = argument(type=FILE, metavar="HEALTH")


@click.command("issue", cls=Command)
@takes(IssueOptions)
def command(options: IssueOptions) -> int:
    """Open an issue when evaluations have shifted, keep it up to date, and close it when that is over.

    HEALTH is what `history health --format json` prints. A shift is a fall of scores though case and target have the
    same digest, or a judge that scores the same answers differently; findings of other kinds open no issue. An issue
    that you close is not opened again for the same shifts. Needs GITHUB_TOKEN with `issues: write`. If GitHub
    refuses, a notice is shown.

    \b
    Examples:
      agentv-ci github issue health.json
    """
    workflow = require_workflow(os.environ)
    try:
        kept = asyncio.run(
            report_shifts(Path.cwd() / options.health, workflow, system_environment(os.environ))
        )
    except NotPublished as problem:
        click.echo(annotation_command(Annotation("notice", "No issue about shifts", str(problem))))
        return PASSED
    if kept.did == "nothing":
        show_line("no new shift, and no open issue", "plain")
    else:
        show_line(f"issue {kept.did}: {kept.url}", "plain")
    return PASSED
