"""`agentv-ci github`: the two steps of the GitHub Action.

Every option has a variable of the environment, since the action hands its inputs on so: what stands in an input can
then be nothing but text.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click

from agentv_ci.cli.console import show_line
from agentv_ci.cli.options import FILE, option, part, takes
from agentv_ci.errors import PASSED, UsageError
from agentv_ci.process import without_runner

RUNNER_FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
"""Variables that name the files by which a step commands the runner."""
FILE_OPTION = "--runner-file"


class Input(click.Option):
    """An option that is an input of the action, too, and comes by a variable then."""

    def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401  # handed on
        super().__init__(*args, **settings)
        self.envvar = f"AGENTV_{str(self.name).upper()}"


action_input = partial(option, cls=Input)
results_dir_option = partial(
    action_input,
    "--results-dir",
    type=FILE,
    metavar="DIR",
    default="agentv-results",
    show_default=True,
    help="Folder for results and reports.",
)


@dataclass(frozen=True)
class PassedOn:
    """Inputs that are flags of `eval` as they are; it says what is wrong with a value."""

    targets: str | None = action_input("--targets", metavar="FILE", help="The targets file.")
    target: str | None = action_input("--target", metavar="NAME", help="Target of all cases.")
    workers: str | None = action_input("--workers", metavar="N", help="Cases at once.")
    repeat: str | None = action_input("--repeat", metavar="N", help="Trials per case.")
    threshold: str | None = action_input("--threshold", metavar="X", help="Score at which a case passes.")
    min_pass_rate: str | None = action_input(
        "--min-pass-rate", metavar="X", help="Gate: least share of graded cases that pass."
    )
    max_cost: str | None = action_input("--max-cost", metavar="USD", help="Gate: most the run may cost.")
    baseline: str | None = action_input("--baseline", metavar="FILE", help="Gate: no regression against this baseline.")
    only_changed: str | None = action_input(
        "--only-changed", metavar="OLD_PLAN", help="Only cases that this plan does not have."
    )
    shard: str | None = action_input("--shard", metavar="I/N", help="Only the I-th of N parts.")


@dataclass(frozen=True)
class Modes:
    """What `publish` does. `run` looks at it, too, so that a wrong word is found before anything is asked."""

    comment: Literal["auto", "always", "never"] = action_input(
        "--comment",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="On the pull request: auto, when there is one and this is no shard; always, shards too; never.",
    )
    annotations: Literal["all", "failures", "none"] = action_input(
        "--annotations",
        type=click.Choice(["all", "failures", "none"]),
        default="all",
        show_default=True,
        help="On lines of eval files: all, of failures, warnings and flaky cases; of failures; none.",
    )
    fail_on: Literal["gate", "errors", "never"] = action_input(
        "--fail-on",
        type=click.Choice(["gate", "errors", "never"]),
        default="gate",
        show_default=True,
        help="gate: the run's exit status; errors: 0 instead of 1; never: only 2, 70 and 130 stay.",
    )


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """What `github run` is given."""

    evals: str = action_input(
        "--evals",
        default="evals/",
        show_default=True,
        metavar="PATHS",
        help="Eval files, folders and globs, one a line; or one plan.",
    )
    passed_on: PassedOn = field(metadata=part(PassedOn))
    dry_run: bool = action_input("--dry-run", is_flag=True, help="The mock answers; nothing is gated.")
    validate_only: bool = action_input("--validate-only", is_flag=True, help="Check the documents and ask nobody.")
    env_file: str | None = action_input(
        "--env-file", type=FILE, metavar="FILE", help="Further variables; those that are set win."
    )
    args: str = action_input(
        "--args", default="", metavar="FLAGS", help="Further flags of `eval` or `validate`, quoted as in a shell."
    )
    results_dir: str = results_dir_option()
    runner_files: tuple[str, ...] = option(FILE_OPTION, multiple=True, hidden=True)
    modes: Modes = field(metadata=part(Modes))
    exit_zero: bool = option(
        "--exit-zero", is_flag=True, help="End with 0 whatever the verdict: `github publish` has the last word."
    )

    @property
    def paths(self) -> Sequence[str]:
        """What `evals` names."""
        return [path for line in self.evals.splitlines() if (path := line.strip())]

    def flags(self) -> Iterator[str]:
        """Yield the inputs that are flags of `eval` or `validate`."""
        for name, value in vars(self.passed_on).items():
            if value and (not self.validate_only or name == "targets"):
                yield f"--{name.replace('_', '-')}={value}"
        if self.dry_run and not self.validate_only:
            yield "--dry-run"


@dataclass(frozen=True, kw_only=True)
class PublishCommandOptions:
    """What `github publish` is given."""

    results_dir: str = results_dir_option()
    modes: Modes = field(metadata=part(Modes))
    comment_key: str | None = action_input(
        "--comment-key",
        metavar="TEXT",
        help="Tells comments of several jobs apart; default: the workflow and the job.",
    )


@click.group("github")
def command() -> None:
    """What the GitHub Action does, in two steps: agents run in the first one, the second one has the token.

    \b
    Examples:
      agentv-ci github run --evals evals/ --workers 4
      agentv-ci github publish --comment never
    """


@command.command("run", short_help="Run evals, and leave what `github publish` needs in a folder.")
@takes(StepOptions)
def run_command(options: StepOptions) -> int:
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
    from agentv_ci.cli.action_step import no_commands, run_step

    with no_commands(options.runner_files):
        code = run_step(options)
    return PASSED if options.exit_zero else code


def _drop_runner_variables() -> None:
    """Begin this process again without them; the files they name come as options.

    Every process of the same user can read with which environment a process began.
    """
    clean = without_runner(os.environ)
    if len(clean) < len(os.environ):
        files = [f"{FILE_OPTION}={path}" for name in RUNNER_FILES if (path := os.environ.get(name))]
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:], *files], clean)  # noqa: S606  # this program


@command.command("publish", short_help="Tell GitHub what has been left in a folder.")
@takes(PublishCommandOptions)
def publish_command(options: PublishCommandOptions) -> int:
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
    publish_options = PublishOptions(
        annotations=options.modes.annotations,
        comment=options.modes.comment,
        comment_key=options.comment_key or f"{workflow.name}/{workflow.job}",
        summary=Path(summary) if summary else None,
        outputs=Path(outputs) if outputs else None,
        delimiter=f"agentv_{secrets.token_hex(16)}",
    )
    environment = system_environment(os.environ)
    folder = Path.cwd() / options.results_dir
    publishing = publish_run(folder, workflow, publish_options, environment=environment, say=click.echo)
    run, url = asyncio.run(publishing)
    if url is not None:
        show_line(f"comment: {url}", "plain")
    show_line(f"agentv-ci: {run.verdict}", "good" if run.exit_code == PASSED else "bad")
    return exit_code(run, options.modes.fail_on)
