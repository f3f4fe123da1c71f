"""`agentv-ci github publish`: publish the results of a run, in the step that has the token."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

import click

from agentv_ci.app.run.environment import system_environment
from agentv_ci.base.text import listed, on_one_line
from agentv_ci.cli.console import show_line
from agentv_ci.cli.options import option, part, takes
from agentv_ci.cli.step_options import Modes, publish_input, results_dir_option
from agentv_ci.errors import PASSED
from agentv_ci.github.publish import publish_run
from agentv_ci.github.publishing import PublishOptions
from agentv_ci.github.workflow import require_workflow


@dataclass(frozen=True, kw_only=True)
class PublishCommandOptions:
    """Options of `github publish`."""

    results_dir: str = results_dir_option()
    modes: Modes = field(metadata=part(Modes))
    comment_key: str | None = publish_input(
        "--comment-key",
        metavar="TEXT",
        help="Distinguish the comments of several jobs of a workflow "
        "(default: the job and its matrix).",
    )
    base_artifact: str = publish_input(
        "--base-artifact",
        metavar="NAME",
        default="agentv-results",
        show_default=True,
        help="Compare a pull request with the newest artifact of this name on its base branch; "
        "empty to skip.",
    )
    run_outcome: str = option(
        "--run-outcome", envvar="AGENTV_RUN_OUTCOME", default="success", hidden=True
    )

    def comment_name(self, workflow: str, job: str) -> str:
        """Return what identifies the comment.

        That is the workflow, and the key or else the job with the values of its matrix. The
        action's default for the key is the matrix as JSON, null without one.
        """
        try:
            matrix = json.loads(self.comment_key or "null")
        except ValueError:
            matrix = self.comment_key
        if matrix is None or matrix == {}:
            return f"{workflow}/{job}"
        if isinstance(matrix, dict):
            values = listed(map(on_one_line, map(str, matrix.values())))
            return f"{workflow}/{job} ({values})"
        return f"{workflow}/{self.comment_key}"


@click.command("publish")
@takes(PublishCommandOptions)
def command(options: PublishCommandOptions) -> int:
    """Publish the results of `github run`, or of `report --out DIR/results.jsonl`, to GitHub.

    Writes annotations, the job summary, the step's outputs and, with GITHUB_TOKEN, one comment on the pull request and
    the check run of --check. If GitHub refuses one of them, a notice is shown; the verdict stays the same.

    \b
    Examples:
      agentv-ci github publish
      agentv-ci github publish --results-dir merged --comment-key nightly
      agentv-ci github publish --annotations none --fail-on never
    """
    workflow = require_workflow(os.environ)
    summary, outputs = map(os.environ.get, ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"))
    publish_options = PublishOptions(
        annotations=options.modes.annotations,
        comment=options.modes.comment,
        check=options.modes.check,
        key=options.comment_name(workflow.name, workflow.job),
        history=options.modes.history,
        base_artifact=options.base_artifact,
        summary=Path(summary) if summary else None,
        outputs=Path(outputs) if outputs else None,
        delimiter=f"agentv_{secrets.token_hex(16)}",
    )
    environment = system_environment(os.environ)
    folder = Path.cwd() / options.results_dir
    # A cancelled step has recorded that; a failed one is not to be trusted.
    contained = options.run_outcome != "failure"
    publishing = publish_run(
        folder,
        workflow,
        publish_options,
        options.modes.fail_on,
        contained=contained,
        environment=environment,
        say=click.echo,
    )
    published = asyncio.run(publishing)
    if published.comment_url is not None:
        show_line(f"comment: {published.comment_url}", "plain")
    run = published.run
    show_line(f"agentv-ci: {run.verdict}", "good" if run.exit_code == PASSED else "bad")
    return published.exit_code
