"""The step of the GitHub Action in which agents run: `validate` or `eval`, and what is kept of what they say."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv_ci.app.github_run import FILES, by_file, ended, keep_plan, keep_run
from agentv_ci.cli.ending import Ended, end
from agentv_ci.cli.output import show_diagnostics, show_line
from agentv_ci.contracts.action import HTML, JUNIT, RESULTS, ActionRun
from agentv_ci.errors import FAILED, PASSED, CannotGoOn, InvalidInput, MissingVariables, UsageError
from agentv_ci.load.discover import find_root
from agentv_ci.load.environment import with_dotenv
from agentv_ci.publish.checkout import refuse_fork_code
from agentv_ci.publish.workflow import Workflow, read_workflow

if TYPE_CHECKING:
    from agentv_ci.contracts.documents import CheckedFile

WRITTEN = {"out": RESULTS, "html": HTML, "junit": JUNIT}
"""Options of `eval` whose files have fixed names here."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the action was given."""

    paths: tuple[str, ...]
    flags: tuple[str, ...]
    """Flags of `eval` or `validate`."""
    args: str
    """More of them, as one would type them."""
    folder: Path
    """Where everything is left."""
    env_file: Path | None
    validate_only: bool
    use: str | None
    """See ActionRun."""

    @property
    def command(self) -> click.Command:
        """What runs."""
        if self.validate_only:
            from agentv_ci.cli.validate_command import command
        else:
            from agentv_ci.cli.eval_command import command
        return command

    def argv(self) -> list[str]:
        """Return the words of the command; raises UsageError for quotes that do not end."""
        try:
            return [*self.flags, *shlex.split(self.args), "--", *self.paths]
        except ValueError as error:
            raise UsageError(f"args: {error}", hint="quote as in a shell") from error


def named(inputs: Inputs) -> set[Path]:
    """Return where all files and folders lie that are named, by whatever input; none where nobody can say."""
    try:
        given = _given(inputs.command, inputs.argv())
    except (CannotGoOn, click.ClickException):
        # It will be said when the command runs.
        given = {}
    values = [value for value in given.values() if isinstance(value, str)]
    found: set[Path] = set()
    for each in (*inputs.paths, *values, *([str(inputs.env_file)] if inputs.env_file else [])):
        # Longer than the system allows, or with a NUL.
        with suppress(OSError, ValueError):
            found.add((Path.cwd() / each).resolve())
    return found


def run_step(inputs: Inputs) -> int:
    """Run, leave how it ended in the folder, and return the exit status; raises OSError when nothing can be left."""
    workflow = read_workflow(os.environ)
    cwd = Path.cwd()
    root = cwd
    found: list[CheckedFile] = []

    def work() -> int:
        nonlocal root
        if not inputs.paths:
            raise UsageError("evals names no path", hint="eval files, folders or globs, one a line")
        root = _root_of(cwd / inputs.paths[0]) or cwd
        # What lies in no repository, such as a file of variables, is nobody's code.
        others = (_root_of(path) for path in (cwd, *named(inputs)))
        roots = {root.resolve(), *(each for each in others if each is not None)}
        asyncio.run(refuse_fork_code(workflow, sorted(roots), os.environ))
        _load(inputs.env_file)
        return _validate(inputs, found) if inputs.validate_only else _evaluate(inputs, found)

    finished = end(work)
    if isinstance(finished.error, InvalidInput):
        found = by_file(finished.error.diagnostics, root)
    run = _ended(finished, workflow, root, validate_only=inputs.validate_only)
    run_id = workflow.run_id if workflow is not None else 0
    keep_run(inputs.folder, run.model_copy(update={"run_id": run_id, "use": inputs.use}), found)
    return run.exit_code


def _root_of(path: Path) -> Path | None:
    """Return the repository that a path, or what lies there, belongs to; None: none, or nobody can say."""
    try:
        root = find_root(path / "any", path)
    except (OSError, ValueError):
        return None
    return root if (root / ".git").exists() else None


def _ended(finished: Ended, workflow: Workflow | None, root: Path, *, validate_only: bool) -> ActionRun:
    error = finished.error
    if isinstance(error, MissingVariables) and workflow is not None and workflow.lacks_secrets:
        show_line("nothing ran: GitHub gives no secrets to runs of forks and of Dependabot", "warn")
        return ActionRun(
            exit_code=PASSED,
            verdict="nothing",
            reason=f"GitHub gives no secrets to runs of forks and of Dependabot, so nothing ran:\n{error.message}",
            hint="--replay runs from recorded answers, without keys",
            root=str(root),
        )
    hint = error.hint if isinstance(error, CannotGoOn) else None
    return ended(finished.exit_code, root=root, validate_only=validate_only, reason=finished.reason, hint=hint)


def _load(env_file: Path | None) -> None:
    if env_file is None:
        return
    if not env_file.is_file():
        raise UsageError(f"env-file: there is no file '{env_file}'")
    try:
        os.environ.update(with_dotenv(os.environ, [env_file]))
    except ValueError as error:
        raise UsageError(f"env-file: '{env_file}' has a variable that no environment can hold: {error}") from error


def _evaluate(inputs: Inputs, found: list[CheckedFile]) -> int:
    """Compile into the folder's plan, then run `eval`; `found` learns what is to be said of documents."""
    from agentv_ci.app.compile import Selection, compile_paths, diff_plans

    argv = inputs.argv()
    given = _given(inputs.command, argv)
    cwd = Path.cwd()
    for name in WRITTEN:
        if given[name] is not None:
            raise UsageError(f"args: --{name} is the action's own", hint="results-dir says where all files go")
    for name in ("markdown", "sarif"):
        if given[name] is not None and (cwd / given[name]).resolve() in {
            inputs.folder.resolve() / each for each in FILES
        }:
            raise UsageError(f"args: --{name} would be written over a file of the action's own")
    selection = Selection(given["paths"], given["targets"], given["target"], given["eval_ids"])
    compiled = compile_paths(selection, cwd=cwd)
    old = given["old_plan"]
    changes = diff_plans(compiled, cwd / old, given["eval_ids"]) if old is not None else None
    keep_plan(inputs.folder, compiled, changes)
    found += by_file(compiled.origin.warnings, compiled.origin.root)
    del compiled
    files = [f"--{name}={inputs.folder / file}" for name, file in WRITTEN.items()]
    return _invoke(inputs.command, [*files, *argv])


def _validate(inputs: Inputs, found: list[CheckedFile]) -> int:
    """Check documents, and compile them where that is possible, since a plan is an output too."""
    from agentv_ci.app.compile import Selection, compile_paths
    from agentv_ci.app.validate import check_paths

    argv = inputs.argv()
    given = _given(inputs.command, argv)
    cwd = Path.cwd()
    found += check_paths(given["paths"], targets=given["targets"], cwd=cwd).files
    code = _invoke(inputs.command, argv)
    if code != PASSED:
        return code
    try:
        keep_plan(inputs.folder, compile_paths(Selection(given["paths"], given["targets"]), cwd=cwd), None)
    except InvalidInput as error:
        # In documents that these are read with, such as targets.
        show_diagnostics(error.diagnostics, err=False)
        found += by_file(error.diagnostics, cwd)
        return FAILED
    except CannotGoOn as error:
        show_line(f"no plan: {error.message}", "warn")
    return PASSED


def _given(command: click.Command, argv: Sequence[str]) -> dict[str, Any]:
    """Return what the words of a command mean; raises UsageError and what click raises."""
    try:
        return command.make_context(f"agentv-ci {command.name}", list(argv)).params
    except click.exceptions.Exit as error:
        raise UsageError("args: asks for help, and so nothing ran") from error


def _invoke(command: click.Command, argv: Sequence[str]) -> int:
    with command.make_context(f"agentv-ci {command.name}", list(argv)) as context:
        code = command.invoke(context)
    return code if isinstance(code, int) else PASSED
