"""`agentv-ci github`: the two steps of the GitHub Action.

Every option has a variable of the environment, since the action hands its inputs on so: what stands in an input can
then be nothing but text.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from agentv_ci.cli.ending import Ended, end
from agentv_ci.cli.options import FILE
from agentv_ci.cli.output import show_diagnostics, show_line
from agentv_ci.contracts.action import HTML, JUNIT, RESULTS, ActionRun
from agentv_ci.errors import FAILED, PASSED, CannotGoOn, InvalidInput, MissingVariables, UsageError
from agentv_ci.load.discover import find_root
from agentv_ci.load.environment import with_dotenv
from agentv_ci.pipeline.workflow import read_workflow, refuse_fork_code
from agentv_ci.process import without_runner

if TYPE_CHECKING:
    from agentv_ci.contracts.documents import CheckedFile
    from agentv_ci.pipeline.action_publish import FailOn
    from agentv_ci.publish import CommentWish
    from agentv_ci.publish.annotations import Wish
    from agentv_ci.publish.context import Workflow

F = TypeVar("F", bound=Callable[..., object])

RESULTS_DIR = "agentv-results"
RUNNER_FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
"""Variables that name the files by which a step commands the runner."""
WRITTEN = ("out", "html", "junit")
"""Options of `eval` that have fixed values here."""

results_dir_option = click.option(
    "--results-dir",
    type=FILE,
    metavar="DIR",
    default=RESULTS_DIR,
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


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the action was given."""

    paths: tuple[str, ...]
    flags: tuple[str, ...]
    """Flags of `eval` or `validate`."""
    args: str
    """More of them, as one would type them."""
    folder: Path
    validate_only: bool

    def argv(self) -> list[str]:
        """Return the words of the command; raises UsageError for quotes that do not end."""
        try:
            return [*self.flags, *shlex.split(self.args), "--", *self.paths]
        except ValueError as error:
            raise UsageError(f"args: {error}", hint="quote as in a shell") from error


def _passed_on(command: F) -> F:
    """Inputs that are flags of `eval` as they are; it says what is wrong with a value."""
    for name, says in reversed(
        (
            ("targets", "The targets file."),
            ("target", "Target of all cases."),
            ("workers", "Cases at once."),
            ("repeat", "Trials per case."),
            ("threshold", "Score at which a case passes."),
            ("min-pass-rate", "Gate: least share of graded cases that pass."),
            ("max-cost", "Gate: most the run may cost."),
            ("baseline", "Gate: no regression against this baseline."),
            ("only-changed", "Only cases that this plan does not have."),
            ("shard", "I/N: only the I-th of N parts."),
        )
    ):
        variable = f"AGENTV_{name.upper().replace('-', '_')}"
        command = click.option(f"--{name}", metavar="VALUE", envvar=variable, help=f"{says} As for `eval`.")(command)
    return command


@command.command("run")
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
    "--env-file", type=FILE, metavar="FILE", envvar="AGENTV_ENV_FILE", help="Further variables; set ones win."
)
@click.option("--args", default="", metavar="FLAGS", envvar="AGENTV_ARGS", help="Further flags, quoted as in a shell.")
@results_dir_option
@click.option("--runner-file", "runner_files", multiple=True, hidden=True)
@click.option("--exit-zero", is_flag=True, help="End with 0 whatever the verdict: `github publish` has the last word.")
def run_step(
    evals: str,
    dry_run: bool,
    validate_only: bool,
    env_file: str | None,
    args: str,
    results_dir: str,
    exit_zero: bool,
    runner_files: tuple[str, ...],
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
    from agentv_ci.pipeline.action_run import prepare

    _drop_runner_variables()
    given = [(name, value) for name, value in passed_on.items() if value]
    known = ("targets",) if validate_only else tuple(passed_on)
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in given if name in known]
    flags += ["--dry-run"] if dry_run and not validate_only else []
    paths = tuple(line.strip() for line in evals.splitlines() if line.strip())
    inputs = Inputs(paths, tuple(flags), args, Path.cwd() / results_dir, validate_only)
    sources = [Path.cwd() / each for each in (*paths, *(value for _, value in given), env_file or "") if each]
    with _no_commands(runner_files):
        prepared = end(lambda: prepare(inputs.folder, sources))
        if prepared.error is not None:
            # What lies there is not of this run, and must not be published as if it were.
            return prepared.exit_code
        code = _run(inputs, sources, env_file)
    return PASSED if exit_zero else code


def _drop_runner_variables() -> None:
    """Begin again without them: whoever runs as the same user can read with what a process began."""
    clean = without_runner(os.environ)
    if len(clean) < len(os.environ):
        files = [f"--runner-file={path}" for name in RUNNER_FILES if (path := os.environ.get(name))]
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:], *files], clean)  # noqa: S606  # this program


def _empty(files: Sequence[str]) -> None:
    """Take back what was written into the files by which a step commands the runner."""
    for file in files:
        path = Path(file)
        with suppress(OSError):
            if path.is_file() and not path.is_symlink():
                os.truncate(path, 0)
            else:
                path.unlink()


@contextmanager
def _no_commands(files: Sequence[str]) -> Iterator[None]:
    """Have the runner take no command meanwhile, neither from what is printed nor from its files: none is meant."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        yield
        return
    token = secrets.token_hex(16)
    click.echo(f"::stop-commands::{token}")
    try:
        yield
    finally:
        # Agents can find them without being told.
        _empty(files)
        click.echo(f"::{token}::")


def _run(inputs: Inputs, sources: Sequence[Path], env_file: str | None) -> int:
    from agentv_ci.pipeline.action_run import by_file, keep_run

    workflow = read_workflow(os.environ)
    cwd = Path.cwd()
    root = find_root(cwd.joinpath(*inputs.paths[:1], "any"), cwd)
    found: list[CheckedFile] = []

    def work() -> int:
        if not inputs.paths:
            raise UsageError("evals names no path", hint="eval files, folders or globs, one a line")
        folders = {find_root(path, cwd) for path in sources}
        asyncio.run(refuse_fork_code(workflow, (root, *sorted(folders)), os.environ))
        if env_file is not None:
            _load(cwd / env_file)
        return _validate(inputs, found) if inputs.validate_only else _evaluate(inputs, found)

    finished = end(work)
    if isinstance(finished.error, InvalidInput):
        found[:] = by_file(finished.error.diagnostics, root)
    run = _ended(finished, workflow, root, validate_only=inputs.validate_only)
    keep_run(inputs.folder, run, found)
    return run.exit_code


def _ended(finished: Ended, workflow: Workflow | None, root: Path, *, validate_only: bool) -> ActionRun:
    from agentv_ci.pipeline.action_run import ended

    error = finished.error
    if isinstance(error, MissingVariables) and workflow is not None and workflow.lacks_secrets:
        show_line("nothing ran: GitHub gives no secrets to runs of forks and of Dependabot", "warn")
        return ActionRun(
            exit_code=PASSED,
            verdict="nothing",
            reason=f"GitHub gives no secrets to runs of forks and of Dependabot, so nothing ran:\n{error.message}",
            hint="`--replay` runs from recorded answers, without keys",
            root=str(root),
        )
    hint = error.hint if isinstance(error, CannotGoOn) else None
    return ended(finished.exit_code, root=root, validate_only=validate_only, reason=_reason(finished), hint=hint)


def _reason(finished: Ended) -> str | None:
    match finished.error:
        case None:
            return None if finished.exit_code != 130 else "interrupted"
        case CannotGoOn() as error:
            return error.message
        case click.ClickException() as error:
            return error.format_message()
        case error:
            return f"{type(error).__name__}: {error}"


def _load(env_file: Path) -> None:
    if not env_file.is_file():
        raise UsageError(f"env-file: there is no file '{env_file}'")
    os.environ.update(with_dotenv(os.environ, [env_file]))


def _evaluate(inputs: Inputs, found: list[CheckedFile]) -> int:
    """Compile into the folder's plan, then run `eval` as anybody would."""
    from agentv_ci.cli.eval_command import command as evaluate
    from agentv_ci.pipeline.action_run import by_file, keep_plan
    from agentv_ci.pipeline.compiling import Selection, compile_paths, diff_plans

    argv = inputs.argv()
    given = evaluate.make_context("eval", list(argv)).params
    for name in WRITTEN:
        if given[name] is not None:
            raise UsageError(f"args: --{name} is the action's own", hint="results-dir says where all files go")
    cwd = Path.cwd()
    selection = Selection(given["paths"], given["targets"], given["target"], given["eval_ids"])
    compiled = compile_paths(selection, cwd=cwd)
    old = given["old_plan"]
    changes = diff_plans(compiled, cwd / old, given["eval_ids"]) if old is not None else None
    keep_plan(inputs.folder, compiled, changes)
    found += by_file(compiled.origin.warnings, compiled.origin.root)
    del compiled
    files = {"out": RESULTS, "html": HTML, "junit": JUNIT}
    return _invoke(evaluate, "eval", [*(f"--{name}={inputs.folder / file}" for name, file in files.items()), *argv])


def _validate(inputs: Inputs, found: list[CheckedFile]) -> int:
    """Check documents, and compile them where that is possible: the plan is an output, too."""
    from agentv_ci.cli.validate_command import command as validate
    from agentv_ci.pipeline.action_run import by_file, keep_plan
    from agentv_ci.pipeline.checking import check_paths
    from agentv_ci.pipeline.compiling import Selection, compile_paths

    argv = inputs.argv()
    given = validate.make_context("validate", list(argv)).params
    cwd = Path.cwd()
    found += check_paths(given["paths"], targets=given["targets"], cwd=cwd).files
    code = _invoke(validate, "validate", argv)
    if code == PASSED:
        try:
            keep_plan(inputs.folder, compile_paths(Selection(given["paths"], given["targets"]), cwd=cwd), None)
        except InvalidInput as error:
            # In documents that these are read with, such as targets.
            show_diagnostics(error.diagnostics, err=False)
            found += by_file(error.diagnostics, cwd)
            return FAILED
        except CannotGoOn as error:
            show_line(f"no plan: {error.message}", "warn")
    return code


def _invoke(command: click.Command, name: str, argv: Sequence[str]) -> int:
    with command.make_context(name, list(argv)) as context:
        code = command.invoke(context)
    return code if isinstance(code, int) else PASSED


@command.command("publish")
@results_dir_option
@click.option(
    "--comment",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    envvar="AGENTV_COMMENT",
    help="On the pull request: auto, when there is one and this is no shard; always; never.",
)
@click.option(
    "--comment-key",
    metavar="TEXT",
    envvar="AGENTV_COMMENT_KEY",
    help="Tells comments of several jobs apart; default: the workflow and the job.",
)
@click.option(
    "--annotations",
    type=click.Choice(["all", "failures", "none"]),
    default="all",
    show_default=True,
    envvar="AGENTV_ANNOTATIONS",
    help="On lines of eval files.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["gate", "errors", "never"]),
    default="gate",
    show_default=True,
    envvar="AGENTV_FAIL_ON",
    help="gate: the run's exit status; errors: 0 instead of 1; never: only 2, 70 and 130 stay.",
)
def publish_step(
    results_dir: str, comment: CommentWish, comment_key: str | None, annotations: Wish, fail_on: FailOn
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
    from agentv_ci.pipeline.action_publish import exit_code, publish_run
    from agentv_ci.publish import Places, Wishes
    from agentv_ci.publish.context import Access

    workflow = read_workflow(os.environ)
    if workflow is None:
        raise UsageError("this is no workflow of GitHub Actions", hint="`agentv-ci report` tells the same to people")
    summary, outputs = (os.environ.get(name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"))
    places = Places(
        summary=Path(summary) if summary else None,
        outputs=Path(outputs) if outputs else None,
        delimiter=f"agentv_{secrets.token_hex(16)}",
    )
    token = os.environ.get("GITHUB_TOKEN")
    access = Access(token, lambda: datetime.now(UTC), asyncio.sleep, random.uniform) if token else None
    wishes = Wishes(annotations, comment, comment_key or f"{workflow.name}/{workflow.job}")
    folder = Path.cwd() / results_dir
    run, published = asyncio.run(publish_run(folder, workflow, wishes, places, access, now=datetime.now(UTC)))
    for line in published.lines:
        click.echo(line)
    if published.url is not None:
        show_line(f"comment: {published.url}", "plain")
    show_line(f"agentv-ci: {run.verdict}", "good" if run.exit_code == PASSED else "bad")
    return exit_code(run, fail_on)
