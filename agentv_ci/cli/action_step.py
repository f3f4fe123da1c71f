"""The step of the GitHub Action in which agents run: `validate` or `eval`.

It keeps a record of how it ended.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from agentv_ci.app.documents import compile as compiling
from agentv_ci.app.documents.previews import diff_plans
from agentv_ci.app.documents.quarantine import NO_QUARANTINE, ReadQuarantine, read_base_quarantine
from agentv_ci.app.run.files import RunFiles
from agentv_ci.cli import adopt_command, eval_command, experiment_command, validate_command
from agentv_ci.cli.console import show_diagnostics, show_line
from agentv_ci.cli.exit import Ended, end
from agentv_ci.cli.options import path_in, record_of
from agentv_ci.cli.running import run
from agentv_ci.contracts.action import HTML, JUNIT, PROOF, RESULTS, ActionRun, Prove
from agentv_ci.contracts.diagnostics import FileDiagnostics
from agentv_ci.errors import FAILED, PASSED, CannotGoOn, InvalidInput, MissingVariables, UsageError
from agentv_ci.github.fork_code import refuse_fork_code
from agentv_ci.github.run import (
    FILES,
    action_run,
    by_file,
    prepare,
    this_use,
    write_plan,
    write_run,
)
from agentv_ci.github.workflow import Workflow, read_workflow
from agentv_ci.load.discover import find_root
from agentv_ci.load.files import with_dotenv
from agentv_ci.report.proof import facts, headline

if TYPE_CHECKING:
    from agentv_ci.cli.step_options import StepOptions
    from agentv_ci.contracts.against_base import AgainstBase
    from agentv_ci.contracts.proof import Proof

OWN_FILES = {"out": RESULTS, "html": HTML, "junit": JUNIT}
"""Options of `eval` that the action sets itself."""
Quarantining = Callable[[eval_command.EvalOptions, compiling.CompiledPlan, Path], ReadQuarantine]
"""Returns the quarantine of a run."""
Held = tuple[compiling.CompiledPlan, "AgainstBase | None"]
Holding = Callable[[eval_command.EvalOptions, compiling.CompiledPlan, Path], Held]
"""Holds a change to the test of its base branch."""
NO_SECRETS = "GitHub provides no secrets to pull requests from forks and Dependabot"


def run_step(options: StepOptions) -> int:
    """Run, record in the results folder how it ended, and return the exit code.

    Raises OSError when nothing can be written, UsageError for a folder that does not belong to the
    action.
    """
    cwd = Path.cwd()
    workflow = read_workflow(os.environ)
    try:
        context, refused = _parse(options), None
    except (CannotGoOn, click.ClickException) as error:
        # Raised again below, once there is a folder to record it in.
        context, refused = None, error
    folder = cwd / options.results_dir
    named = _named_paths(options, context)
    use = this_use(os.environ)
    # If this fails, the files in the folder are not of this run and must not be published as if
    # they were.
    prepare(folder, named, use)
    root = _first_root(options, cwd)
    files: list[FileDiagnostics] = []
    is_of_change = workflow is not None and workflow.is_of_change
    quarantine = partial(_quarantine, options.quarantine, is_of_change=is_of_change)
    hold = partial(_held_to_base, options, workflow)
    command: Callable[[Path, click.Context, list[FileDiagnostics]], int] = partial(
        _evaluate, prove=options.prove, quarantine=quarantine, hold=hold
    )
    if options.validate_only:
        command = _validate
    elif options.adopts:
        command = _adopt
    elif _is_experiment(options):
        command = _experiment

    def work() -> int:
        if not options.paths:
            raise UsageError(
                "evals is empty", hint="list eval files, folders or globs, one per line"
            )
        # Files outside of any repository, such as a .env file, are not the code of a fork.
        roots = {root.resolve(), *filter(None, map(_root_of, (cwd, *named)))}
        asyncio.run(refuse_fork_code(workflow, sorted(roots), os.environ))
        _load(options.env_file)
        if context is None:
            assert refused is not None, "parsing failed for a reason"
            raise refused
        if is_of_change:
            _refuse_baseline(context, options.passed_on.baseline)
        with context:
            return command(folder, context, files)

    ended = end(work)
    if isinstance(ended.error, InvalidInput):
        files = by_file(ended.error.diagnostics, root)
    ran = _action_run(ended, workflow, root, validate_only=options.validate_only)
    run_id = workflow.run_id if workflow is not None else 0
    known = {
        "run_id": run_id,
        "use": use,
        "narrowed": context is not None and _is_narrowed(context),
    }
    write_run(folder, ran.model_copy(update=known), files)
    return ran.exit_code


def _parse(options: StepOptions) -> click.Context:
    """Parse the options of `validate` or `eval`; raises UsageError and click's exceptions."""
    if options.adopts and options.validate_only:
        raise UsageError("results cannot be combined with validate-only")
    command: click.Command = adopt_command.command if options.adopts else eval_command.command
    if options.validate_only:
        command = validate_command.command
    elif _is_experiment(options):
        if options.prove != "off":
            raise UsageError("prove cannot be combined with an experiment")
        command = experiment_command.command
    try:
        words = [*options.flags(), *shlex.split(options.args), "--", *options.paths]
        return command.make_context(f"agentv-ci {command.name}", words)
    except ValueError as error:
        raise UsageError(f"args: {error}", hint="quote as in a shell") from error
    except click.exceptions.Exit as error:
        raise UsageError("args: --help is not supported") from error


def _is_narrowed(context: click.Context) -> bool:
    """Whether options leave cases out."""
    return any(
        map(
            context.params.get, ("eval_ids", "tags", "not_tags", "expression", "old_plan", "failed")
        )
    )


def _is_experiment(options: StepOptions) -> bool:
    """Whether `evals` names an experiment, and nothing else."""
    return (
        not options.adopts
        and len(options.paths) == 1
        and compiling.is_experiment(Path.cwd() / options.paths[0])
    )


def _named_paths(options: StepOptions, context: click.Context | None) -> set[Path]:
    """Return all files and folders named by inputs.

    `context` is None if the options are invalid.
    """
    names = [*options.paths, *filter(None, [options.env_file])]
    if context is not None:
        names += (value for value in context.params.values() if isinstance(value, str))
    paths: set[Path] = set()
    for name in names:
        # The path may be too long or contain a NUL.
        with suppress(OSError, ValueError):
            paths.add((Path.cwd() / name).resolve())
    return paths


def _first_root(options: StepOptions, cwd: Path) -> Path:
    """Return the repository of the first path, else the working directory."""
    if not options.paths:
        return cwd
    return _root_of(cwd / options.paths[0]) or cwd


def _root_of(path: Path) -> Path | None:
    """Return the repository that contains a path, or None."""
    try:
        root = find_root(path / "any", path)
    except (OSError, ValueError):
        return None
    return root if (root / ".git").exists() else None


def _action_run(
    ended: Ended, workflow: Workflow | None, root: Path, *, validate_only: bool
) -> ActionRun:
    error = ended.error
    if isinstance(error, MissingVariables) and workflow is not None and workflow.lacks_secrets:
        show_line(f"nothing ran: {NO_SECRETS}", "warn")
        return ActionRun(
            exit_code=PASSED,
            verdict="nothing",
            reason=f"{NO_SECRETS}, so nothing ran:\n{error.message}",
            hint="use --replay to run from recorded answers, without keys",
            root=str(root),
        )
    hint = error.hint if isinstance(error, CannotGoOn) else None
    place = None
    if isinstance(error, MissingVariables):
        hint = "env:\n" + "\n".join(
            f"  {name}: ${{{{ secrets.{name} }}}}" for name in error.variables
        )
        place = next(iter(error.places.values()), None)
    ran = action_run(
        ended.exit_code, root=root, validate_only=validate_only, reason=ended.reason, hint=hint
    )
    if place is None:
        return ran
    path, line = place
    return ran.model_copy(update={"path": path, "line": line})


def _refuse_baseline(context: click.Context, known: str | None) -> None:
    """Raise UsageError for a baseline that only `args` names: a change may have edited it."""
    if context.params.get("baseline") not in (None, known):
        hint = "use the input baseline, which is read from the base branch"
        raise UsageError("args: --baseline does not count for a change", hint=hint)


def _load(name: str | None) -> None:
    if name is None:
        return
    env_file = Path.cwd() / name
    if not env_file.is_file():
        raise UsageError(f"env-file: '{env_file}' does not exist")
    try:
        os.environ.update(with_dotenv(os.environ, [env_file]))
    except ValueError as error:
        raise UsageError(f"env-file: invalid variable in '{env_file}': {error}") from error


def _evaluate(
    folder: Path,
    context: click.Context,
    files: list[FileDiagnostics],
    *,
    prove: Prove,
    quarantine: Quarantining,
    hold: Holding,
) -> int:
    """Compile, write the plan into the folder, then run; add the diagnostics to `files`.

    What is proven is proven before any agent runs, which could change the files of the evaluators.
    """
    cwd = Path.cwd()
    _refuse_own_files(folder, context, cwd)
    own = _own_files(folder)
    options = record_of(eval_command.EvalOptions, {**context.params, **own})
    # The proof of a whole plan is the same in each of its shards.
    proves = prove != "off" and (options.shard is None or options.shard.index == 1)
    if proves:
        own["proof"] = str(folder / PROOF)
        options = record_of(eval_command.EvalOptions, {**context.params, **own})
    compiled, against_base = hold(
        options, compiling.compile_paths(options.selection.of(options.paths), cwd=cwd), cwd
    )
    changes = None
    if options.old_plan is not None:
        changes = diff_plans(compiled, cwd / options.old_plan, options.selection.only())
    write_plan(folder, compiled, changes)
    files += by_file(compiled.origin.warnings, compiled.origin.root)
    options.require_consistency(cwd)
    excused = quarantine(options, compiled, cwd)
    files += by_file(excused.diagnostics, compiled.origin.root)
    proof = _proven(options, compiled, folder, cwd) if proves else None
    code = eval_command.run_compiled(options, compiled, cwd, excused, against_base=against_base)
    if prove == "gate" and proof is not None and not proof.gate.passed:
        show_line(f"prove: not passed: {'; '.join(proof.gate.reasons)}", "bad")
        if code == PASSED:
            return FAILED
    return code


def _held_to_base(
    step: StepOptions,
    workflow: Workflow | None,
    options: eval_command.EvalOptions,
    compiled: compiling.CompiledPlan,
    cwd: Path,
) -> Held:
    """Return the plan, that of a change held to the test of its base branch."""
    if workflow is None or not workflow.is_of_change:
        return compiled, None
    from agentv_ci.github.against_base import Terms, against_base  # many runs are not of changes

    run_options = options.run_options(compiled.origin, cwd)
    terms = Terms(
        tree=path_in(cwd, step.base_tree),
        problem=step.base_problem,
        gate_from=step.gate_from,
        missing_cases=step.missing_cases,
        pinned=options.overrides().settings,
        stores=list(filter(None, (run_options.cache, run_options.resume))),
        recordings=run_options.replay,
        today=datetime.now(UTC).date(),
    )
    selection = options.selection.of(options.paths)
    return asyncio.run(
        against_base(compiled, selection, terms, workflow, cwd=cwd, variables=os.environ)
    )


def _quarantine(
    of_base: str | None,
    options: eval_command.EvalOptions,
    compiled: compiling.CompiledPlan,
    cwd: Path,
    *,
    is_of_change: bool,
) -> ReadQuarantine:
    """Return the quarantine of the work tree, or for a change that of its base branch."""
    if options.quarantine is not None:
        raise UsageError(
            "args: --quarantine is set by the action", hint="write .agentv/quarantine.yaml"
        )
    if options.no_quarantine or options.dry_run or (is_of_change and not of_base):
        return NO_QUARANTINE
    if not of_base:
        return options.read_quarantine(compiled, cwd)
    try:
        return read_base_quarantine(
            cwd / of_base, compiled.plan, cwd=cwd, today=datetime.now(UTC).date()
        )
    except UsageError as error:
        show_line(
            f"nothing is in quarantine, since that of the base branch is invalid: {error.message}",
            "warn",
        )
        return NO_QUARANTINE


def _experiment(folder: Path, context: click.Context, files: list[FileDiagnostics]) -> int:
    """Run an experiment, and write its plan into the folder before."""
    _refuse_own_files(folder, context, Path.cwd())
    given = {**context.params, **_own_files(folder)}
    options = record_of(experiment_command.ExperimentOptions, given)

    def take(compiled: compiling.CompiledPlan) -> None:
        write_plan(folder, compiled, None)
        files.extend(by_file(compiled.origin.warnings, compiled.origin.root))

    return experiment_command.run_experiment(options, Path.cwd(), take)


def _adopt(folder: Path, context: click.Context, _: list[FileDiagnostics]) -> int:
    """Judge the results of another tool; there are no documents with diagnostics."""
    _refuse_own_files(folder, context, Path.cwd())
    given = {**context.params, **_own_files(folder)}
    return adopt_command.adopt(record_of(adopt_command.AdoptOptions, given), Path.cwd())


def _own_files(folder: Path) -> dict[str, str]:
    """Return the options of `eval` that the action sets itself, for its folder."""
    return {name: str(folder / file) for name, file in OWN_FILES.items()}


def _proven(
    options: eval_command.EvalOptions, compiled: compiling.CompiledPlan, folder: Path, cwd: Path
) -> Proof:
    """Prove the cases that run, and write the proof into the folder."""
    from agentv_ci.app.prove import prove as proving  # few workflows prove anything
    from agentv_ci.app.prove.proof_file import write_proof

    part = compiled
    if options.old_plan is not None:
        part = compiling.only_changed(compiled, cwd / options.old_plan)
    how = proving.ProofOptions(workers=options.workers or 1)
    proof = run(
        partial(proving.prove, part, compiled.plan, how),
        RunFiles(folder / PROOF, "jsonl"),
        dotenv_files=compiled.origin.dotenv_files,
        verbosity=options.verbosity,
    )
    write_proof(proof, folder / PROOF)
    for line in (headline(proof), *facts(proof)):
        show_line(line.text, line.style)
    return proof


def _refuse_own_files(folder: Path, context: click.Context, cwd: Path) -> None:
    """Raise UsageError for options that name a file the action writes itself."""
    for name in OWN_FILES:
        if context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            raise UsageError(
                f"args: --{name} is set by the action",
                hint="use results-dir to choose where files go",
            )
    if context.params.get("wants_list"):
        raise UsageError("args: --list is not supported")
    own = set(map(folder.resolve().joinpath, FILES))
    for name in ("markdown", "sarif"):
        given = context.params[name]
        if given is not None and (cwd / given).resolve() in own:
            raise UsageError(f"args: --{name} would overwrite a file of the action")
    for each in context.params["report"]:
        if (cwd / each.partition("=")[2]).resolve() in own:
            raise UsageError("args: --report would overwrite a file of the action")


def _validate(folder: Path, context: click.Context, files: list[FileDiagnostics]) -> int:
    """Check documents, and compile them if possible.

    The plan is an output of the action, too.
    """
    cwd = Path.cwd()
    options = record_of(validate_command.ValidateOptions, context.params)
    checks = validate_command.check(options)
    files += checks.files
    code = validate_command.show_checks(checks, options)
    if code != PASSED:
        return code
    try:
        compiled = compiling.compile_paths(
            compiling.Selection(options.paths, options.targets), cwd=cwd
        )
        write_plan(folder, compiled, None)
    except InvalidInput as error:
        # The errors are in other documents that these are read with, such as targets.
        show_diagnostics(error.diagnostics, err=False)
        files += by_file(error.diagnostics, cwd)
        return FAILED
    except CannotGoOn as error:
        show_line(f"no plan: {error.message}", "warn")
    return PASSED
