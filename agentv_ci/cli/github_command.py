"""`agentv-ci github`: the two steps of the GitHub Action.

Every option has a variable of the environment, since the action hands its inputs on so: what stands in an input can
then be nothing but text.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from agentv_ci.cli.console import show_line
from agentv_ci.cli.options import FILE, color_option
from agentv_ci.errors import PASSED, UsageError
from agentv_ci.process import without_runner

if TYPE_CHECKING:
    from agentv_ci.app.github_publish import FailOn
    from agentv_ci.publish.publishing import AnnotationMode, CommentMode

F = TypeVar("F", bound=Callable[..., object])

RUNNER_FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
"""Variables that name the files by which a step commands the runner."""
FILE_OPTION = "--runner-file"

PASSED_ON = (
    ("targets", "FILE", "The targets file."),
    ("target", "NAME", "Target of all cases."),
    ("workers", "N", "Cases at once."),
    ("repeat", "N", "Trials per case."),
    ("threshold", "X", "Score at which a case passes."),
    ("min-pass-rate", "X", "Gate: least share of graded cases that pass."),
    ("max-cost", "USD", "Gate: most the run may cost."),
    ("baseline", "FILE", "Gate: no regression against this baseline."),
    ("only-changed", "OLD_PLAN", "Only cases that this plan does not have."),
    ("shard", "I/N", "Only the I-th of N parts."),
)
"""Inputs that are flags of `eval` as they are; it says what is wrong with a value."""

results_dir_option = click.option(
    "--results-dir",
    type=FILE,
    metavar="DIR",
    default="agentv-results",
    show_default=True,
    envvar="AGENTV_RESULTS_DIR",
    help="Folder for results and reports.",
)


@click.group("github")
def command() -> None:
    """What the GitHub Action does, in two steps: agents run in the first one, the second one has the token.

    \b
    Examples:
      agentv-ci github run --evals evals/ --workers 4
      agentv-ci github publish --comment never
    """


def _passed_on(command: F) -> F:
    for name, metavar, says in reversed(PASSED_ON):
        variable = f"AGENTV_{name.upper().replace('-', '_')}"
        command = click.option(f"--{name}", metavar=metavar, envvar=variable, help=says)(command)
    return command


MODES = (
    (
        "comment",
        ("auto", "always", "never"),
        "On the pull request: auto, when there is one and this is no shard; always, shards too; never.",
    ),
    (
        "annotations",
        ("all", "failures", "none"),
        "On lines of eval files: all, of failures, warnings and flaky cases; of failures; none.",
    ),
    (
        "fail-on",
        ("gate", "errors", "never"),
        "gate: the run's exit status; errors: 0 instead of 1; never: only 2, 70 and 130 stay.",
    ),
)
"""What `publish` does. `run` looks at it, too, so that a wrong word is found before anything is asked."""


def _modes(*, expose: bool) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for name, words, says in reversed(MODES):
            command = click.option(
                f"--{name}",
                type=click.Choice(words),
                default=words[0],
                show_default=True,
                envvar=f"AGENTV_{name.upper().replace('-', '_')}",
                help=says,
                expose_value=expose,
            )(command)
        return command

    return decorate


@command.command("run", short_help="Run evals, and leave what `github publish` needs in a folder.")
@click.option(
    "--evals",
    default="evals/",
    show_default=True,
    metavar="PATHS",
    envvar="AGENTV_EVALS",
    help="Eval files, folders and globs, one a line; or one plan.",
)
@_passed_on
@click.option("--dry-run", is_flag=True, envvar="AGENTV_DRY_RUN", help="The mock answers; nothing is gated.")
@click.option(
    "--validate-only", is_flag=True, envvar="AGENTV_VALIDATE_ONLY", help="Check the documents and ask nobody."
)
@click.option(
    "--env-file", type=FILE, metavar="FILE", envvar="AGENTV_ENV_FILE", help="Further variables; those that are set win."
)
@click.option(
    "--args",
    default="",
    metavar="FLAGS",
    envvar="AGENTV_ARGS",
    help="Further flags of `eval` or `validate`, quoted as in a shell.",
)
@results_dir_option
@click.option(FILE_OPTION, "runner_files", multiple=True, hidden=True)
@_modes(expose=False)
@click.option("--exit-zero", is_flag=True, help="End with 0 whatever the verdict: `github publish` has the last word.")
@color_option
def run_command(
    evals: str,
    dry_run: bool,
    validate_only: bool,
    env_file: str | None,
    args: str,
    results_dir: str,
    runner_files: tuple[str, ...],
    exit_zero: bool,
    **passed_on: str | None,
) -> int:
    """Run evals, and leave all that `github publish` needs in a folder.

    Agents run here, so this process drops the runner's variables, tokens first, before it does anything else. It
    refuses to run a fork's code under events that have secrets in reach.

    \b
    Examples:
      agentv-ci github run --evals evals/ --workers 4 --shard 1/3
      agentv-ci github run --validate-only
      AGENTV_EVALS='evals/' AGENTV_ARGS='--fail-fast' agentv-ci github run
    """
    _drop_runner_variables()
    from agentv_ci.app.github_run import this_use
    from agentv_ci.cli.action_step import Inputs, no_commands, run_step

    cwd = Path.cwd()
    paths = tuple(line.strip() for line in evals.splitlines() if line.strip())
    given = {name: value for name, value in passed_on.items() if value and (not validate_only or name == "targets")}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    inputs = Inputs(
        paths=paths,
        flags=(*flags, *(["--dry-run"] if dry_run and not validate_only else [])),
        args=args,
        folder=cwd / results_dir,
        env_file=cwd / env_file if env_file is not None else None,
        validate_only=validate_only,
        use=this_use(os.environ),
    )
    with no_commands(runner_files):
        code = run_step(inputs)
    return PASSED if exit_zero else code


def _drop_runner_variables() -> None:
    """Begin this process again without them; the files they name come as options.

    Every process of the same user can read with which environment a process began.
    """
    clean = without_runner(os.environ)
    if len(clean) < len(os.environ):
        files = [f"{FILE_OPTION}={path}" for name in RUNNER_FILES if (path := os.environ.get(name))]
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:], *files], clean)  # noqa: S606  # this program


@command.command("publish", short_help="Tell GitHub what has been left in a folder.")
@results_dir_option
@_modes(expose=True)
@click.option(
    "--comment-key",
    metavar="TEXT",
    envvar="AGENTV_COMMENT_KEY",
    help="Tells comments of several jobs apart; default: the workflow and the job.",
)
@color_option
def publish_command(
    results_dir: str, comment: CommentMode, comment_key: str | None, annotations: AnnotationMode, fail_on: FailOn
) -> int:
    """Tell GitHub what `github run`, or `report --out DIR/results.jsonl`, has left in a folder.

    Annotations, the job's summary, the step's outputs, and one comment on the pull request, for which GITHUB_TOKEN is
    needed. What GitHub refuses is a notice, never another verdict.

    \b
    Examples:
      agentv-ci github publish
      agentv-ci github publish --results-dir merged --comment-key nightly
      agentv-ci github publish --annotations none --fail-on never
    """
    from agentv_ci.app.environment import system_environment
    from agentv_ci.app.github_publish import exit_code, publish_run
    from agentv_ci.publish.publishing import PublishOptions
    from agentv_ci.publish.workflow import read_workflow

    workflow = read_workflow(os.environ)
    if workflow is None:
        raise UsageError("this is no workflow of GitHub Actions", hint="`agentv-ci report` tells the same to people")
    summary, outputs = (os.environ.get(name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"))
    options = PublishOptions(
        annotations=annotations,
        comment=comment,
        comment_key=comment_key or f"{workflow.name}/{workflow.job}",
        summary=Path(summary) if summary else None,
        outputs=Path(outputs) if outputs else None,
        delimiter=f"agentv_{secrets.token_hex(16)}",
    )
    environment = system_environment(os.environ)
    publishing = publish_run(Path.cwd() / results_dir, workflow, options, environment=environment, say=click.echo)
    run, url = asyncio.run(publishing)
    if url is not None:
        show_line(f"comment: {url}", "plain")
    show_line(f"agentv-ci: {run.verdict}", "good" if run.exit_code == PASSED else "bad")
    return exit_code(run, fail_on)
