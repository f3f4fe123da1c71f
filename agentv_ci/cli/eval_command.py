"""`agentv-ci eval`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from agentv_ci.app.compile import Compiled, compile_paths, only_changed
from agentv_ci.app.report_files import RunFiles
from agentv_ci.app.run import run_plan
from agentv_ci.cli.console import ignoring_lost_output, short, show_diagnostics, show_line, show_outcome
from agentv_ci.cli.options import (
    FILE,
    Count,
    GateOptions,
    Range,
    ReportOptions,
    SelectionOptions,
    color_option,
    form_and_name,
    form_option,
    gate_options,
    report_options,
    selection_options,
    takes,
    verbose_option,
    workers_option,
)
from agentv_ci.cli.running import run, stamp
from agentv_ci.compile.overrides import Overrides
from agentv_ci.errors import UsageError
from agentv_ci.execute.cache import CACHE
from agentv_ci.execute.run import RunOptions
from agentv_ci.execute.shard import Shard
from agentv_ci.results.files import ResultsFormat, form_of


class ShardType(click.ParamType[Shard]):
    """`I/N`: the I-th of N parts."""

    name = "I/N"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Shard:
        """Return the part; says what is wrong with anything else."""
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", str(value))
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            self.fail(f"{value!r} is not I/N with I from 1 to N, such as 2/4", param, ctx)
        return Shard(index=int(match[1]), total=int(match[2]))


@dataclass(frozen=True, kw_only=True)
class EvalOptions(SelectionOptions, GateOptions, ReportOptions):
    """What `eval` is given."""

    old_plan: str | None
    out: str | None
    form: ResultsFormat | None
    workers: int | None
    repeat: int | None
    seed: int | None
    agent_timeout: float | None
    max_retries: int | None
    dry_run: bool
    wants_cache: bool
    cache_dir: str | None
    record: str | None
    replay: str | None
    resume: str | None
    shard: Shard | None
    balance: str | None
    fail_fast: bool
    dump_prompts: bool
    dump_traces: bool
    dump_dir: str | None
    include_trace: bool
    max_cost: float | None
    baseline: str | None
    verbose: bool

    def require_consistency(self, cwd: Path) -> None:
        """Raise UsageError for options that do not go together."""
        _refuse_together(("--record", self.record), ("--replay", self.replay), ("--dry-run", self.dry_run))
        _refuse_together(("--replay", self.replay), ("--cache", self.wants_cache))
        _refuse_alone("--cache-dir", self.cache_dir, "--cache", wants=self.wants_cache)
        _refuse_alone("--balance", self.balance, "--shard", wants=self.shard)
        dumps = self.dump_prompts or self.dump_traces
        _refuse_alone("--dump-dir", self.dump_dir, "--dump-prompts or --dump-traces", wants=dumps)
        _refuse_together(("--cache", self.wants_cache), ("--dry-run", self.dry_run))
        if self.replay is not None and not (cwd / self.replay).is_dir():
            raise UsageError(f"--replay: there is no folder '{self.replay}'", hint="make it with --record")

    def overrides(self) -> Overrides:
        """Return what takes the place of the plan's own settings."""
        return Overrides(
            repeat=self.repeat,
            seed=self.seed,
            threshold=self.threshold,
            timeout_s=self.agent_timeout,
            max_retries=self.max_retries,
            min_pass_rate=self.min_pass_rate,
            min_mean_score=self.min_mean_score,
            max_errors=self.max_errors,
        )

    def run_options(self, root: Path, cwd: Path) -> RunOptions:
        """Return how the plan is run."""
        dumps = cwd / (self.dump_dir or ".agentv")
        return RunOptions(
            root=root,
            workers=self.workers,
            dry_run=self.dry_run,
            include_trace=self.include_trace,
            fail_fast=self.fail_fast,
            max_cost_usd=self.max_cost,
            cache=cwd / (self.cache_dir or CACHE) if self.wants_cache else None,
            record=cwd / self.record if self.record else None,
            replay=cwd / self.replay if self.replay else None,
            prompts=dumps / "prompts" if self.dump_prompts else None,
            traces=dumps / "traces" if self.dump_traces else None,
            shard=self.shard,
            balance=cwd / self.balance if self.balance else None,
            resume=cwd / self.resume if self.resume else None,
            baseline=cwd / self.baseline if self.baseline else None,
            is_filtered=bool(self.eval_ids) or self.old_plan is not None,
        )

    def files(self, cwd: Path) -> RunFiles:
        """Return where results and reports go; raises UsageError where their names do not fit."""
        form = form_and_name(self.form, self.out or self.resume)
        if self.resume is not None and form_of(Path(self.resume)) != form:
            raise UsageError(
                f"--resume {self.resume} and --out {self.out} are not written alike", hint="give them the same suffix"
            )
        results = self.out or self.resume or Path(".agentv", "results", f"eval_{stamp()}.{form}")
        return RunFiles(cwd / results, form, self.reports(cwd))


@click.command("eval")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@selection_options
@click.option(
    "--only-changed",
    "old_plan",
    type=FILE,
    metavar="OLD_PLAN",
    help="Only cases that this plan does not have; written by `compile`.",
)
@click.option(
    "--out", type=FILE, metavar="PATH", help="Results file; default: .agentv/results/eval_<timestamp>.<format>."
)
@form_option
@workers_option
@click.option("--repeat", type=Count(min=1), metavar="N", help="Trials per case; all of them run.")
@click.option("--seed", type=int, metavar="N", help="Trial n uses seed N + n - 1.")
@click.option(
    "--agent-timeout",
    type=Range(min=0, min_open=True),
    metavar="S",
    help="Seconds per attempt (default: 600).",
)
@click.option(
    "--max-retries",
    type=Count(min=0),
    metavar="N",
    help="Attempts again after a timeout or a failed command (default: 2).",
)
@click.option("--dry-run", is_flag=True, help="The mock answers for every target and judge; nothing is gated.")
@click.option("--cache/--no-cache", "wants_cache", help="Keep answers, and ask nothing twice (default: off).")
@click.option("--cache-dir", type=FILE, metavar="DIR", help=f"Where answers are kept; default: {CACHE}.")
@click.option("--record", type=FILE, metavar="DIR", help="Keep every answer there, for --replay.")
@click.option("--replay", type=FILE, metavar="DIR", help="Take all answers from there and ask nobody; needs no keys.")
@click.option(
    "--resume", type=FILE, metavar="FILE", help="Keep what these results hold already, and run the rest into them."
)
@click.option("--shard", type=ShardType(), help="Only the I-th of N parts; `report` judges them together.")
@click.option("--balance", type=FILE, metavar="FILE", help="Results whose durations make the parts equally long.")
@click.option("--fail-fast", is_flag=True, help="Begin nothing more after the first case that fails or errs.")
@click.option("--dump-prompts", is_flag=True, help="Write every question to .agentv/prompts/.")
@click.option("--dump-traces", is_flag=True, help="Write the messages of every answer to .agentv/traces/.")
@click.option("--dump-dir", type=FILE, metavar="DIR", help="Where prompts/ and traces/ go instead of .agentv/.")
@click.option("--include-trace", is_flag=True, help="Keep full output messages in the rows.")
@gate_options
@click.option(
    "--max-cost",
    type=Range(min=0),
    metavar="USD",
    help="Gate: most the run may cost, judges included; then nothing more begins.",
)
@click.option(
    "--baseline", type=FILE, metavar="FILE", help="Gate: no regression against this baseline, or these results."
)
@report_options
@verbose_option
@color_option
@takes(EvalOptions)
def command(options: EvalOptions) -> int:
    """Run eval files, folders, globs or one plan: ask the targets, judge the answers, report, gate.

    \b
    Examples:
      agentv-ci eval evals/example.test.yaml
      agentv-ci eval evals/ --target gpt --workers 8 --junit junit.xml
      agentv-ci eval plan.json --eval-id 'refund-*' --repeat 3
      agentv-ci eval evals/ --only-changed plan-of-main.json
      agentv-ci eval evals/ --resume .agentv/results/eval.jsonl
      agentv-ci eval evals/ --shard 2/4 --out part-2.jsonl
      agentv-ci eval evals/ --replay recordings/
      agentv-ci eval evals/ --repeat 5 --baseline .agentv/baseline.json
    """
    cwd = Path.cwd()
    options.require_consistency(cwd)
    return evaluate(options, compile_paths(options.selection, cwd=cwd), cwd)


def evaluate(options: EvalOptions, compiled: Compiled, cwd: Path) -> int:
    """Run what was compiled for these options, report, and return the exit status."""
    with ignoring_lost_output():
        show_diagnostics(compiled.origin.warnings, err=True)
    left_out = None
    if options.old_plan is not None:
        everything = len(compiled.plan.cases)
        compiled = only_changed(compiled, cwd / options.old_plan)
        left_out = f"{everything - len(compiled.plan.cases)} of {everything} cases left out: as in {options.old_plan}"
        with ignoring_lost_output():
            show_line(left_out, "warn", err=True)
    run_options = options.run_options(compiled.origin.root, cwd)
    files = options.files(cwd)
    work = partial(run_plan, compiled, options.overrides(), run_options, files)
    outcome = run(work, files, dotenv_files=compiled.origin.dotenv_files, verbose=options.verbose)
    show_outcome(outcome, files.written, cwd)
    if outcome.report.stopped is not None:
        resumed = Path(options.out or options.resume or short(files.results, cwd))
        show_line(f"the rest runs with --resume {resumed}", "plain")
    if left_out is not None:
        show_line(left_out, "warn")
    return outcome.report.gate.exit_code


def _refuse_together(*given: tuple[str, object]) -> None:
    names = [name for name, value in given if value]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} cannot go together")


def _refuse_alone(name: str, value: object, other: str, *, wants: object) -> None:
    if value is not None and not wants:
        raise UsageError(f"{name} does nothing without {other}")
