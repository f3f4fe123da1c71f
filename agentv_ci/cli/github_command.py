"""`agentv-ci github`: the two steps of the GitHub Action.

Every option can be set by an environment variable. The action passes its inputs that way, so that
they are never code.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentv_ci.base.process import without_runner
from agentv_ci.base.text import on_one_line
from agentv_ci.cli.console import show_line
from agentv_ci.cli.options import FILE, Command, argument, option, part, takes
from agentv_ci.cli.step_options import (
    FILE_OPTION,
    Modes,
    StepOptions,
    action_input,
    publish_input,
    results_dir_option,
)
from agentv_ci.errors import PASSED, UsageError

if TYPE_CHECKING:
    from agentv_ci.github.workflow import Workflow

RUNNER_FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
"""Variables that name the files through which a step commands the runner."""


@dataclass(frozen=True, kw_only=True)
class BaseOptions:
    """Options of `github base`."""

    baseline: str | None = action_input(
        "--baseline", metavar="FILE", help="Read this baseline, too."
    )


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
            values = ", ".join(on_one_line(str(value)) for value in matrix.values())
            return f"{workflow}/{job} ({values})"
        return f"{workflow}/{self.comment_key}"


@dataclass(frozen=True)
class IssueOptions:
    """Options of `github issue`."""

    health: str = argument(type=FILE, metavar="HEALTH")


@click.group("github")
def command() -> None:
    """Run evaluations in GitHub Actions and publish the results.

    Agents run in `run`, which has no token; `base` before it and `publish` after it have the token.

    \b
    Examples:
      agentv-ci github base --baseline .agentv/baseline.json
      agentv-ci github run --evals evals/ --workers 4
      agentv-ci github publish --comment never
    """


@command.command(
    "base", cls=Command, short_help="Read what counts from a pull request's base branch."
)
@takes(BaseOptions)
def base_command(options: BaseOptions) -> int:
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
    from agentv_ci.app.run.environment import system_environment
    from agentv_ci.github.base_step import read_base_files
    from agentv_ci.github.publishing import outputs
    from agentv_ci.github.workflow import read_workflow

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


@command.command("run", cls=Command, short_help="Run evals and keep the results in a directory.")
@takes(StepOptions)
def run_command(options: StepOptions) -> int:
    """Run evals and keep the results in a directory for `github publish`.

    Before anything runs, this process drops the runner's variables, tokens included. It refuses to run a fork's code
    in events that have access to secrets.

    \b
    Examples:
      agentv-ci github run --evals evals/ --workers 4 --shard 1/3
      agentv-ci github run --validate-only
      AGENTV_EVALS='evals/' AGENTV_ARGS='--fail-fast' agentv-ci github run
    """
    _drop_runner_variables()
    from agentv_ci.cli.action_guard import guarded
    from agentv_ci.cli.action_step import run_step

    # In GitHub Actions the runner reads the output and has files; elsewhere there is nothing to
    # guard.
    if options.runner_files and os.environ.get("GITHUB_ACTIONS") == "true":
        code = guarded(lambda: run_step(options), options.runner_files, os.environ)
    else:
        code = run_step(options)
    return PASSED if options.exit_zero else code


def _drop_runner_variables() -> None:
    """Replace this process by one without them, and pass the files they name as options.

    Every process of the same user can read the environment that a process started with.
    """
    clean = without_runner(os.environ)
    if len(clean) < len(os.environ):
        files = [f"{FILE_OPTION}={path}" for name in RUNNER_FILES if (path := os.environ.get(name))]
        command = [sys.executable, *sys.orig_argv[1:], *files]
        os.execve(sys.executable, command, clean)  # noqa: S606  # this program


@command.command("publish", short_help="Publish results to GitHub.")
@takes(PublishCommandOptions)
def publish_command(options: PublishCommandOptions) -> int:
    """Publish the results of `github run`, or of `report --out DIR/results.jsonl`, to GitHub.

    Writes annotations, the job summary, the step's outputs and, with GITHUB_TOKEN, one comment on the pull request and
    the check run of --check. If GitHub refuses one of them, a notice is shown; the verdict stays the same.

    \b
    Examples:
      agentv-ci github publish
      agentv-ci github publish --results-dir merged --comment-key nightly
      agentv-ci github publish --annotations none --fail-on never
    """
    from agentv_ci.app.run.environment import system_environment
    from agentv_ci.github.publish import publish_run
    from agentv_ci.github.publishing import PublishOptions

    workflow = _workflow()
    summary, outputs = (os.environ.get(name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"))
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


@command.command(
    "issue", cls=Command, short_help="Keep one issue about shifts, as long as there are any."
)
@takes(IssueOptions)
def issue_command(options: IssueOptions) -> int:
    """Open an issue when evaluations have shifted, keep it up to date, and close it when that is over.

    HEALTH is what `history health --format json` prints. A shift is a fall of scores though case and target have the
    same digest, or a judge that scores the same answers differently; findings of other kinds open no issue. An issue
    that you close is not opened again for the same shifts. Needs GITHUB_TOKEN with `issues: write`. If GitHub
    refuses, a notice is shown.

    \b
    Examples:
      agentv-ci github issue health.json
    """
    from agentv_ci.app.run.environment import system_environment
    from agentv_ci.base.workflow_commands import annotation_command
    from agentv_ci.contracts.action import Annotation
    from agentv_ci.github.issue import report_shifts
    from agentv_ci.github.refusals import NotPublished

    workflow = _workflow()
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


def _workflow() -> Workflow:
    """Return the workflow that this process runs in; raises UsageError."""
    from agentv_ci.github.workflow import read_workflow

    workflow = read_workflow(os.environ)
    if workflow is None:
        raise UsageError("not running in GitHub Actions", hint="use `agentv-ci report` elsewhere")
    return workflow
