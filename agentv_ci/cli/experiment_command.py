"""`agentv-ci experiment`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path

import click

from agentv_ci.app.documents.commit_trees import CommitTrees
from agentv_ci.app.documents.compile import CompiledPlan
from agentv_ci.app.results.report import report_results
from agentv_ci.app.run.experiment import CompiledExperiment, compile_experiment
from agentv_ci.app.run.files import RunFiles
from agentv_ci.base.mappings import present
from agentv_ci.cli.console import show_outcome
from agentv_ci.cli.eval_command import EvalOptions, list_compiled, run_compiled
from agentv_ci.cli.options import (
    ALLOW_CHANGES,
    ALLOW_CHANGES_HELP,
    FILE,
    BaselineOptions,
    Command,
    GateOptions,
    IncreaseOptions,
    argument,
    gate_option,
    given_in,
    part,
    path_in,
    results_option,
    takes,
)
from agentv_ci.cli.report_options import form_and_name
from agentv_ci.cli.selection_options import SelectionOptions
from agentv_ci.compile.overrides import override
from agentv_ci.errors import PASSED, UNDECIDED, UsageError


@dataclass(frozen=True, kw_only=True)
class ExperimentSelection(SelectionOptions):
    """Which cases to compare; the arms name the targets."""

    target: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ExperimentGate(GateOptions):
    """The gate of an experiment is its verdict; only errors are counted beside it."""

    threshold: float | None = None
    min_pass_rate: float | None = None
    min_mean_score: float | None = None


NO_BASELINE = BaselineOptions(baseline=None, allow_changes=False, undecided=None)
NO_INCREASES = IncreaseOptions(**dict.fromkeys(each.name for each in fields(IncreaseOptions)))


@dataclass(frozen=True, kw_only=True)
class ExperimentOptions(EvalOptions):
    """Options of `experiment`: those of `eval` that do not change what is compared."""

    paths: tuple[str, ...] = argument(metavar="FILE", callback=lambda _, __, file: (file,))
    selection: SelectionOptions = field(metadata=part(ExperimentSelection))
    old_plan: str | None = None
    failed: str | None = None
    repeat: int | None = None
    seed: int | None = None
    fail_fast: bool = False
    gate: GateOptions = field(metadata=part(ExperimentGate))
    against: BaselineOptions = NO_BASELINE
    increases: IncreaseOptions = NO_INCREASES
    quarantine: str | None = None
    no_quarantine: bool = True
    confirm: int | None = None
    results: tuple[str, ...] = results_option(
        "--results",
        type=FILE,
        multiple=True,
        help="Judge these results, or shards, and run nothing; repeatable.",
    )
    allow_undecided: bool = gate_option(
        "--allow-undecided",
        is_flag=True,
        help="Exit with 0 instead of 6 if the verdict is undecided or withheld.",
    )
    regardless: bool = gate_option(ALLOW_CHANGES, is_flag=True, help=ALLOW_CHANGES_HELP)


@click.command("experiment", cls=Command)
@takes(ExperimentOptions)
def command(options: ExperimentOptions) -> int:
    """Compare arms over the same cases, and say which is better, worse or equivalent.

    FILE is an experiment: its arms differ in a target, a prompt, guidelines, files, variables or a commit. They run
    interleaved in random order. With `stop` in FILE, the run ends as soon as the primary metric is decided. `compile
    --power FILE` shows how many trials that may take.

    Exit code 0: no arm is worse; 1: an arm is worse; 4: more errors than the gate allows; 6: undecided, or withheld
    because more than the arms differs; others as for `eval`.

    \b
    Examples:
      agentv-ci experiment experiment.yaml
      agentv-ci experiment experiment.yaml --workers 8 --max-cost 5 --html report.html
      agentv-ci experiment experiment.yaml --resume
      agentv-ci experiment experiment.yaml --shard 1/2 --out part-1.jsonl
      agentv-ci experiment experiment.yaml --results part-1.jsonl --results part-2.jsonl
      agentv-ci experiment experiment.yaml --dry-run
    """
    return run_experiment(options, Path.cwd())


def run_experiment(
    options: ExperimentOptions, cwd: Path, take: Callable[[CompiledPlan], None] = lambda _: None
) -> int:
    """Compile an experiment, run or judge it, and return the exit code.

    `take` gets the plan before anything runs.
    """
    options.require_consistency(cwd)
    (file,) = options.paths
    with CommitTrees(os.environ) as trees:
        experiment = compile_experiment(file, options.selection.of(()), cwd=cwd, trees=trees)
        take(experiment.compiled)
        if options.wants_list:
            return list_compiled(options, experiment.compiled, cwd)
        judge = _judge if options.results else _run
        code = judge(options, experiment, cwd)
    if code == UNDECIDED and options.allow_undecided:
        return PASSED
    return code


def _run(options: ExperimentOptions, experiment: CompiledExperiment, cwd: Path) -> int:
    if options.engine == "dask" and any(arm.ref is not None for arm in experiment.document.arms):
        raise UsageError(
            "--engine dask does not support arms with 'ref': workers have no other commits"
        )
    given = (options.max_cost, experiment.document.max_cost_usd)
    limits = list(present(given))
    options = replace(options, max_cost=min(limits, default=None))
    judged = partial(experiment.judgement, regardless=options.regardless)
    return run_compiled(options, experiment.compiled, cwd, experiment=judged)


def _judge(options: ExperimentOptions, experiment: CompiledExperiment, cwd: Path) -> int:
    """Judge finished results, and return the exit code."""
    given = {"--shard": options.shard, "--resume": options.resume, "--dry-run": options.dry_run}
    if named := given_in(given):
        raise UsageError(f"--results and {named[0]} cannot be combined")
    reports = options.reports.at(cwd)
    files = None
    if out := path_in(cwd, options.out):
        files = RunFiles(out, form_and_name(options.form, options.out), reports)
    plan = override(experiment.compiled.plan, options.overrides())
    outcome = report_results(
        options.results,
        files,
        reports,
        cwd=cwd,
        expected_shards=None,
        judge=experiment.judgement(plan, regardless=options.regardless).report,
    )
    written = files.written if files is not None else reports.named
    show_outcome(outcome, written, cwd, quiet=options.verbosity.quiet)
    return outcome.report.gate.exit_code
