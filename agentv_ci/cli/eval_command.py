"""`agentv-ci eval`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from msgspec.structs import replace

from agentv_ci.app.documents.compile import CompiledPlan, Origin, compile_paths, only_changed
from agentv_ci.app.documents.quarantine import (
    NO_QUARANTINE,
    ReadQuarantine,
    find_quarantine,
    read_quarantine,
)
from agentv_ci.app.run.failed_cases import only_failed
from agentv_ci.app.run.files import RunFiles
from agentv_ci.app.run.latest import LATEST, RESULTS, latest_results, new_results
from agentv_ci.app.run.run import list_run, run_plan
from agentv_ci.base.text import counted, listed
from agentv_ci.cli.again import options_again
from agentv_ci.cli.console import (
    ignoring_lost_output,
    short,
    show_annotation,
    show_line,
    show_outcome,
    show_warning,
    show_warnings_of,
)
from agentv_ci.cli.defaults import require_latest
from agentv_ci.cli.listing import show_cases
from agentv_ci.cli.options import (
    FILE,
    BaselineOptions,
    Command,
    Count,
    GateOptions,
    IncreaseOptions,
    Range,
    Verbosity,
    form_option,
    gate_option,
    given_in,
    list_option,
    option,
    part,
    path_in,
    paths_argument,
    results_option,
    selection_option,
    takes,
    typed_command,
    workers_option,
)
from agentv_ci.cli.report_options import ReportOptions, form_and_name
from agentv_ci.cli.running import run
from agentv_ci.cli.selection_options import SelectionOptions
from agentv_ci.compile.overrides import Overrides
from agentv_ci.contracts.gate import setting_of
from agentv_ci.errors import PASSED, UsageError
from agentv_ci.execute.run_services import ClusterOptions, RunOptions
from agentv_ci.execute.shard import Shard
from agentv_ci.execute.stores import CACHE
from agentv_ci.load.files import with_dotenv
from agentv_ci.results.files import ResultsFormat, form_of
from agentv_ci.workspaces.places import Keep

if TYPE_CHECKING:
    from agentv_ci.analysis.experiment.experiment import Judgement  # few runs are experiments
    from agentv_ci.contracts.against_base import AgainstBase
    from agentv_ci.contracts.plan import Plan
    from agentv_ci.contracts.report import GateResult


class ShardType(click.ParamType[Shard]):
    """`I/N`: shard I of N."""

    name = "I/N"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Shard:
        """Return the shard; fail on anything else."""
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", str(value))
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            self.fail(f"{value!r} must be I/N with I from 1 to N, such as 2/4", param, ctx)
        return Shard(index=int(match[1]), total=int(match[2]))


run_option = partial(option, group="Run options")
answer_option = partial(option, group="Stored answers")
debug_option = partial(option, group="Debugging")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EvalOptions:
    """Options of `eval`."""

    paths: tuple[str, ...] = paths_argument()
    selection: SelectionOptions = field(metadata=part(SelectionOptions))
    old_plan: str | None = selection_option(
        "--only-changed",
        type=FILE,
        metavar="OLD_PLAN",
        help="Run only cases that are new or changed since OLD_PLAN, written by `compile`.",
    )
    failed: str | None = selection_option(
        "--failed",
        type=FILE,
        metavar="[RESULTS]",
        is_flag=False,
        flag_value=str(LATEST),
        help="Run only cases that did not pass in RESULTS (default: the latest results).",
    )
    shard: Shard | None = selection_option(  # noqa: RUF009  # a declaration
        "--shard", type=ShardType(), help="Run only shard I of N; merge the results with `report`."
    )
    balance: str | None = selection_option(
        "--balance",
        type=FILE,
        help="Make shards take equally long, by the durations in these results.",
    )
    wants_list: bool = list_option()
    list_form: Literal["text", "json"] = selection_option(
        "--format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Set the output format of --list.",
    )
    workers: int | None = workers_option()
    engine: Literal["local", "dask"] = run_option(
        "--engine",
        type=click.Choice(["local", "dask"]),
        default="local",
        show_default=True,
        help="Run cases on this machine, or on the workers of a Dask cluster.",
    )
    scheduler: str | None = run_option(
        "--scheduler",
        metavar="ADDRESS",
        help="Use the cluster of this Dask scheduler, such as tcp://HOST:8786.",
    )
    local_cluster: int | None = run_option(
        "--local-cluster",
        type=Count(min=1),
        help="Start a Dask cluster of N workers on this machine.",
    )
    repeat: int | None = run_option(
        "--repeat", type=Count(min=1), help="Run N trials of every case."
    )
    seed: int | None = run_option(
        "--seed", type=int, metavar="N", help="Set the seed of trial 1; trial n gets N+n-1."
    )
    agent_timeout: float | None = run_option(
        "--agent-timeout",
        type=Range(min=0, min_open=True),
        metavar="S",
        help="Stop an attempt after S seconds (default: 600).",
    )
    max_retries: int | None = run_option(
        "--max-retries",
        type=Count(min=0),
        help="Retry N times after a timeout or a failed command (default: 2).",
    )
    fail_fast: bool = run_option(
        "--fail-fast", is_flag=True, help="Stop after the first failed or errored case."
    )
    dry_run: bool = run_option(
        "--dry-run",
        is_flag=True,
        help="Score the reference answers instead of asking; judges are mocked; skip the gate.",
    )
    out: str | None = results_option(
        "--out",
        type=FILE,
        help="Write the results to FILE (default: .agentv/results/eval_<timestamp>.<format>).",
    )
    form: ResultsFormat | None = form_option()  # noqa: RUF009  # a declaration
    resume: str | None = results_option(
        "--resume",
        type=FILE,
        is_flag=False,
        flag_value=str(LATEST),
        help="Keep the rows in FILE (default: the latest results); run only the rest.",
    )
    include_trace: bool = results_option(
        "--include-trace/--no-trace",
        default=True,
        help="Keep messages, tool calls and questions to judges in the results (default).",
    )
    wants_cache: bool = answer_option(
        "--cache/--no-cache", help="Reuse answers to the same questions (default: off)."
    )
    cache_dir: str | None = answer_option(
        "--cache-dir", type=FILE, metavar="DIR", help=f"Store the cache in DIR (default: {CACHE})."
    )
    record: str | None = answer_option(
        "--record", type=FILE, metavar="DIR", help="Record answers in DIR for --replay."
    )
    replay: str | None = answer_option(
        "--replay",
        type=FILE,
        metavar="DIR",
        help="Take every answer from DIR instead of asking; requires no keys.",
    )
    keep_workspaces: Keep = debug_option(  # noqa: RUF009  # a declaration
        "--keep-workspaces",
        type=click.Choice(["none", "failed", "all"]),
        default="none",
        show_default=True,
        help="Keep the workspaces of trials that did not pass, or of all, in .agentv/workspaces/.",
    )
    gate: GateOptions = field(metadata=part(GateOptions))
    max_cost: float | None = gate_option(
        "--max-cost",
        type=Range(min=0),
        metavar="USD",
        help="Stop and fail when the run, judges included, costs more than USD.",
    )
    against: BaselineOptions = field(metadata=part(BaselineOptions))
    increases: IncreaseOptions = field(metadata=part(IncreaseOptions))
    quarantine: str | None = gate_option(
        "--quarantine",
        type=FILE,
        help="Do not gate on the cases that this quarantine names "
        "(default: .agentv/quarantine.yaml).",
    )
    no_quarantine: bool = gate_option("--no-quarantine", is_flag=True, help="Gate on all cases.")
    confirm: int | None = gate_option(
        "--confirm",
        type=Count(min=1),
        help="Run N more trials of the cases that leave "
        "the comparison with the baseline undecided.",
    )
    reports: ReportOptions = field(metadata=part(ReportOptions))
    dump_prompts: bool = debug_option(
        "--dump-prompts", is_flag=True, help="Write every question to .agentv/prompts/."
    )
    dump_traces: bool = debug_option(
        "--dump-traces", is_flag=True, help="Write all messages to .agentv/traces/."
    )
    dump_dir: str | None = debug_option(
        "--dump-dir",
        type=FILE,
        metavar="DIR",
        help="Write prompts/ and traces/ to DIR instead of .agentv/.",
    )
    verbosity: Verbosity = field(metadata=part(Verbosity))

    def require_consistency(self, cwd: Path) -> None:
        """Raise UsageError for options that cannot be combined."""
        _refuse_together(
            ("--record", self.record), ("--replay", self.replay), ("--dry-run", self.dry_run)
        )
        _refuse_together(("--replay", self.replay), ("--cache", self.wants_cache))
        _refuse_together(("--quarantine", self.quarantine), ("--no-quarantine", self.no_quarantine))
        _refuse_alone("--cache-dir", self.cache_dir, "--cache", wants=self.wants_cache)
        _refuse_alone(
            "--format", self.list_form, "--list", wants=self.wants_list or self.list_form == "text"
        )
        _refuse_alone("--confirm", self.confirm, "--baseline", wants=self.against.baseline)
        _refuse_alone("--balance", self.balance, "--shard", wants=self.shard)
        for metric in self.increases.limits():
            # The limits of shards hold when `report` merges them and compares the whole.
            wants = self.against.baseline or self.shard
            _refuse_alone(
                f"--{setting_of(metric).replace('_', '-')}", metric, "--baseline", wants=wants
            )
        self._require_cluster()
        dumps = self.dump_prompts or self.dump_traces
        _refuse_alone("--dump-dir", self.dump_dir, "--dump-prompts or --dump-traces", wants=dumps)
        _refuse_together(("--cache", self.wants_cache), ("--dry-run", self.dry_run))
        if self.resume is not None and (cwd / self.resume).is_dir():
            raise UsageError(
                f"--resume: '{self.resume}' is a directory",
                hint="put --resume last, or name a file",
            )
        if self.replay is not None and not (cwd / self.replay).is_dir():
            raise UsageError(
                f"--replay: '{self.replay}' is not a directory", hint="create it with --record"
            )

    def _require_cluster(self) -> None:
        if self.engine == "local":
            _refuse_alone("--scheduler", self.scheduler, "--engine dask", wants=False)
            _refuse_alone("--local-cluster", self.local_cluster, "--engine dask", wants=False)
            return
        if (self.scheduler is None) == (self.local_cluster is None):
            raise UsageError("--engine dask requires --scheduler or --local-cluster, and not both")
        if self.wants_cache and self.cache_dir is None:
            raise UsageError(
                "--engine dask: --cache requires --cache-dir",
                hint="name a folder that all workers share",
            )
        if self.replay is not None:
            raise UsageError(
                "--engine dask and --replay cannot be combined",
                hint="a replay asks nothing; run it on this machine",
            )
        files = {
            "--dump-prompts": self.dump_prompts,
            "--dump-traces": self.dump_traces,
            "--keep-workspaces": self.keep_workspaces != "none",
        }
        if given := given_in(files):
            raise UsageError(
                f"--engine dask does not support {listed(given)}",
                hint="the files would lie on workers; rows have the messages",
            )

    def overrides(self) -> Overrides:
        """Return the settings that override those of the plan."""
        return Overrides(
            repeat=self.repeat,
            seed=self.seed,
            timeout_s=self.agent_timeout,
            max_retries=self.max_retries,
            max_increases=self.increases.limits(),
            **vars(self.gate),
        )

    def run_options(self, origin: Origin, cwd: Path) -> RunOptions:
        """Return the options of the run."""
        root = origin.root
        dumps = path_in(cwd, self.dump_dir) or root / ".agentv"
        cache = path_in(cwd, self.cache_dir) or root / CACHE
        cluster = None
        if self.engine == "dask":
            cluster = ClusterOptions(self.scheduler, self.local_cluster)
        return RunOptions(
            root=root,
            workers=self.workers,
            dry_run=self.dry_run,
            include_trace=self.include_trace,
            fail_fast=self.fail_fast,
            max_cost_usd=self.max_cost,
            cache=cache if self.wants_cache else None,
            record=path_in(cwd, self.record),
            replay=path_in(cwd, self.replay),
            prompts=dumps / "prompts" if self.dump_prompts else None,
            traces=dumps / "traces" if self.dump_traces else None,
            keep_workspaces=self.keep_workspaces,
            cluster=cluster,
            shard=self.shard,
            balance=path_in(cwd, self.balance),
            resume=self._earlier(root, cwd),
            baseline=self.against.path(cwd),
            allows_changes=self.against.allow_changes,
            when_undecided=self.against.undecided,
            confirm=self.confirm,
            command=typed_command(),
            again=options_again(
                root,
                cwd,
                paths={"--targets": self.selection.targets, "--replay": self.replay},
                values={
                    "--repeat": self.repeat,
                    "--seed": self.seed,
                    "--agent-timeout": self.agent_timeout,
                    "--max-retries": self.max_retries,
                    "--threshold": self.gate.threshold,
                },
                dry_run=self.dry_run,
            ),
            is_filtered=bool(
                self.selection.only() or self.old_plan or self.failed or origin.left_out
            ),
        )

    def read_quarantine(self, compiled: CompiledPlan, cwd: Path) -> ReadQuarantine:
        """Return the quarantine of the work tree; raises UsageError and InvalidInput."""
        path = path_in(cwd, self.quarantine) or find_quarantine(compiled.origin.root)
        if path is None or self.no_quarantine or self.dry_run:
            return NO_QUARANTINE
        return read_quarantine(path, compiled.plan, cwd=cwd, today=datetime.now(UTC).date())

    def _earlier(self, root: Path, cwd: Path) -> Path | None:
        """Return the results to resume, which need not exist."""
        if self.resume == str(LATEST):
            return latest_results(root) or root / LATEST
        return path_in(cwd, self.resume)

    def files(self, root: Path, cwd: Path) -> RunFiles:
        """Return where results and reports go.

        Raises UsageError for names that contradict the format.
        """
        earlier = self._earlier(root, cwd)
        # Without latest results there is nothing to append to.
        resumed = earlier if earlier != root / LATEST else None
        named = path_in(cwd, self.out) or resumed
        written = None
        if resumed is not None and resumed.is_file():
            written = form_of(resumed)
        form = self.form
        if form is None and not self.out:
            form = written
        form = form_and_name(form, self.out or self.resume)
        if written not in (None, form):
            hint = f"set --output-format {written}, the format of '{self.resume}'"
            raise UsageError("--resume cannot change the format of the results", hint=hint)
        folder = root / RESULTS
        results = named or new_results(root, datetime.now(UTC), form=form)
        return RunFiles(
            results,
            form,
            self.reports.at(cwd),
            is_latest=results.parent == folder and not self.dry_run,
        )


@click.command("eval", cls=Command)
@takes(EvalOptions)
def command(options: EvalOptions) -> int:
    """Run eval files, folders, globs or one plan: ask the targets, score the answers, report, apply the gate.

    PATH defaults to evals/.

    \b
    Examples:
      agentv-ci eval
      agentv-ci eval evals/example.test.yaml
      agentv-ci eval evals/ --target default --workers 8 --junit junit.xml
      agentv-ci eval plan.json --eval-id 'knows-*' --repeat 3
      agentv-ci eval evals/ --only-changed plan.json
      agentv-ci eval evals/ --resume
      agentv-ci eval --failed
      agentv-ci eval evals/ --shard 1/2 --out part-1.jsonl
      agentv-ci eval evals/ --record recordings/
      agentv-ci eval evals/ --replay recordings/
      agentv-ci eval evals/ --repeat 5 --baseline .agentv/baseline.json --max-cost-increase 10%
      agentv-ci eval evals/ --no-quarantine
    """
    cwd = Path.cwd()
    options.require_consistency(cwd)
    compiled = compile_paths(options.selection.of(options.paths), cwd=cwd)
    if options.wants_list:
        return list_compiled(options, compiled, cwd)
    return run_compiled(options, compiled, cwd)


def list_compiled(options: EvalOptions, compiled: CompiledPlan, cwd: Path) -> int:
    """Print what a compiled plan would run with these options."""
    show_warnings_of(compiled.origin)
    compiled, _ = _narrowed(options, compiled, cwd)
    run_options = options.run_options(compiled.origin, cwd)
    files = options.files(run_options.root, cwd)
    variables = with_dotenv(os.environ, compiled.origin.dotenv_files)
    show_cases(
        list_run(compiled, options.overrides(), run_options, files, variables), options.list_form
    )
    return PASSED


def run_compiled(
    options: EvalOptions,
    compiled: CompiledPlan,
    cwd: Path,
    quarantine: ReadQuarantine | None = None,
    experiment: Callable[[Plan], Judgement] | None = None,
    against_base: AgainstBase | None = None,
) -> int:
    """Run a compiled plan with these options, report, and return the exit code.

    `quarantine` is that of a base branch; without it, that of the work tree counts. `experiment`
    judges the arms. `against_base` is what a change does to its own test.
    """
    if quarantine is None:
        quarantine = options.read_quarantine(compiled, cwd)
    quiet = options.verbosity.quiet
    if not quiet:
        with ignoring_lost_output():
            show_warnings_of(compiled.origin, quarantine.diagnostics)
    compiled, left_out = _narrowed(options, quarantine.beside(compiled), cwd)
    run_options = options.run_options(compiled.origin, cwd)
    run_options = replace(run_options, quarantine=quarantine.entries, against_base=against_base)
    files = options.files(run_options.root, cwd)
    work = partial(
        run_plan, compiled, options.overrides(), run_options, files, experiment=experiment
    )
    outcome = run(
        work, files, dotenv_files=compiled.origin.dotenv_files, verbosity=options.verbosity
    )
    show_outcome(outcome, files.written, cwd, quiet=quiet)
    if outcome.report.stopped not in (None, "decided") and not quiet:
        resumed = Path(options.out or options.resume or short(files.results, cwd))
        show_line(f"run the rest with --resume {resumed}", "plain")
    if not quiet:
        for each in left_out:
            show_line(each, "warn")
        if experiment is None and _has_unchecked_limits(options, outcome.report.gate):
            show_warning("limits of increases in 'gate' are not checked without --baseline")
    _show_leftovers(compiled.origin.left_out, os.environ, quiet=quiet)
    return outcome.report.gate.exit_code


def _has_unchecked_limits(options: EvalOptions, gate: GateResult) -> bool:
    """Whether a whole run has limits of increases, and nothing to compare with."""
    compares_later = options.against.baseline or options.shard or options.dry_run
    return not compares_later and any(each.max_increases for each in gate.settings)


def _show_leftovers(left_out: int, environ: Mapping[str, str], *, quiet: bool) -> None:
    """Say how many cases `only` left out.

    A CI job has it even if it is quiet, as an annotation where it can.
    """
    is_ci = bool(environ.get("CI"))
    if not left_out or (quiet and not is_ci):
        return
    sentence = f"{counted(left_out, 'case')} did not run: 'only' is set on others of their files"
    show_line(sentence, "warn")
    if is_ci:
        show_annotation(sentence, level="warning")


def _narrowed(
    options: EvalOptions, compiled: CompiledPlan, cwd: Path
) -> tuple[CompiledPlan, list[str]]:
    """Return the plan without the cases that need not run, and sentences about them."""
    left_out: list[str] = []

    def leave_out(narrowed: CompiledPlan, why: str) -> CompiledPlan:
        total = len(compiled.plan.cases)
        left_out.append(
            f"{total - len(narrowed.plan.cases)} of {counted(total, 'case')} skipped: {why}"
        )
        return narrowed

    if options.old_plan is not None:
        narrowed = only_changed(compiled, cwd / options.old_plan)
        compiled = leave_out(narrowed, f"unchanged since {options.old_plan}")
    if options.failed is not None:
        results = require_latest(cwd) if options.failed == str(LATEST) else options.failed
        narrowed, elsewhere = only_failed(compiled, cwd / results)
        compiled = leave_out(narrowed, f"passed, or not in {results}")
        if elsewhere and not (options.selection.target or options.verbosity.quiet):
            others = listed(sorted(elsewhere))
            show_warning(f"in {results} these cases failed for {others}; name it with --target")
    return compiled, left_out


def _refuse_together(*given: tuple[str, object]) -> None:
    names = given_in(dict(given))
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} cannot be combined")


def _refuse_alone(name: str, value: object, other: str, *, wants: object) -> None:
    if value is not None and not wants:
        raise UsageError(f"{name} requires {other}")
