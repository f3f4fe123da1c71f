"""`agentv-ci eval`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from agentv_ci.app.compile import CompiledPlan, compile_paths, only_changed
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
    argument,
    form_and_name,
    form_option,
    option,
    part,
    takes,
    verbose_option,
    workers_option,
)
from agentv_ci.cli.running import run, stamp
from agentv_ci.compile.overrides import Overrides
from agentv_ci.errors import UsageError
from agentv_ci.execute.run_services import RunOptions
from agentv_ci.execute.shard import Shard
from agentv_ci.execute.stores import CACHE
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
class EvalOptions:
    """What `eval` is given."""

    paths: tuple[str, ...] = argument(nargs=-1, required=True, metavar="PATH…")
    selection: SelectionOptions = field(metadata=part(SelectionOptions))
    old_plan: str | None = option(
        "--only-changed",
        type=FILE,
        metavar="OLD_PLAN",
        help="Only cases that this plan does not have; written by `compile`.",
    )
    out: str | None = option(
        "--out", type=FILE, metavar="PATH", help="Results file; default: .agentv/results/eval_<timestamp>.<format>."
    )
    form: ResultsFormat | None = form_option()  # noqa: RUF009  # a declaration
    workers: int | None = workers_option()
    repeat: int | None = option("--repeat", type=Count(min=1), metavar="N", help="Trials per case; all of them run.")
    seed: int | None = option("--seed", type=int, metavar="N", help="Trial n uses seed N + n - 1.")
    agent_timeout: float | None = option(
        "--agent-timeout", type=Range(min=0, min_open=True), metavar="S", help="Seconds per attempt (default: 600)."
    )
    max_retries: int | None = option(
        "--max-retries",
        type=Count(min=0),
        metavar="N",
        help="Attempts again after a timeout or a failed command (default: 2).",
    )
    dry_run: bool = option(
        "--dry-run", is_flag=True, help="The mock answers for every target and judge; nothing is gated."
    )
    wants_cache: bool = option("--cache/--no-cache", help="Keep answers, and ask nothing twice (default: off).")
    cache_dir: str | None = option(
        "--cache-dir", type=FILE, metavar="DIR", help=f"Where answers are kept; default: {CACHE}."
    )
    record: str | None = option("--record", type=FILE, metavar="DIR", help="Keep every answer there, for --replay.")
    replay: str | None = option(
        "--replay", type=FILE, metavar="DIR", help="Take all answers from there and ask nobody; needs no keys."
    )
    resume: str | None = option(
        "--resume", type=FILE, metavar="FILE", help="Keep what these results hold already, and run the rest into them."
    )
    shard: Shard | None = option(  # noqa: RUF009  # a declaration
        "--shard", type=ShardType(), help="Only the I-th of N parts; `report` judges them together."
    )
    balance: str | None = option(
        "--balance", type=FILE, metavar="FILE", help="Results whose durations make the parts equally long."
    )
    fail_fast: bool = option(
        "--fail-fast", is_flag=True, help="Begin nothing more after the first case that fails or errs."
    )
    dump_prompts: bool = option("--dump-prompts", is_flag=True, help="Write every question to .agentv/prompts/.")
    dump_traces: bool = option(
        "--dump-traces", is_flag=True, help="Write the messages of every answer to .agentv/traces/."
    )
    dump_dir: str | None = option(
        "--dump-dir", type=FILE, metavar="DIR", help="Where prompts/ and traces/ go instead of .agentv/."
    )
    include_trace: bool = option("--include-trace", is_flag=True, help="Keep full output messages in the rows.")
    gate: GateOptions = field(metadata=part(GateOptions))
    max_cost: float | None = option(
        "--max-cost",
        type=Range(min=0),
        metavar="USD",
        help="Gate: most the run may cost, judges included; then nothing more begins.",
    )
    baseline: str | None = option(
        "--baseline", type=FILE, metavar="FILE", help="Gate: no regression against this baseline, or these results."
    )
    reports: ReportOptions = field(metadata=part(ReportOptions))
    verbose: bool = verbose_option()

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
            timeout_s=self.agent_timeout,
            max_retries=self.max_retries,
            **vars(self.gate),
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
            is_filtered=bool(self.selection.eval_ids) or self.old_plan is not None,
        )

    def files(self, cwd: Path) -> RunFiles:
        """Return where results and reports go; raises UsageError where their names do not fit."""
        form = form_and_name(self.form, self.out or self.resume)
        if self.resume is not None and form_of(Path(self.resume)) != form:
            raise UsageError(
                f"--resume {self.resume} and --out {self.out} are not written alike", hint="give them the same suffix"
            )
        results = self.out or self.resume or Path(".agentv", "results", f"eval_{stamp()}.{form}")
        return RunFiles(cwd / results, form, self.reports.at(cwd))


@click.command("eval")
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
    return run_compiled(options, compile_paths(options.selection.of(options.paths), cwd=cwd), cwd)


def run_compiled(options: EvalOptions, compiled: CompiledPlan, cwd: Path) -> int:
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
