"""`agentv-ci github run`: run evals in a step that has no token."""

from __future__ import annotations

import os
import sys

import click

from agentv_ci.base.process import without_runner
from agentv_ci.cli.options import Command, takes
from agentv_ci.cli.step_options import FILE_OPTION, StepOptions
from agentv_ci.errors import PASSED

RUNNER_FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
"""Variables that name the files through which a step commands the runner."""


@click.command("run", cls=Command)
@takes(StepOptions)
def command(options: StepOptions) -> int:
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
    from agentv_ci.cli.action_guard import guarded  # the process may be replaced first
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
