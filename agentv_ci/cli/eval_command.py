"""`agentv-ci eval`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import click

from agentv_ci.cli.options import color_option, eval_id_option, target_option, targets_option
from agentv_ci.cli.output import show_diagnostics, show_line
from agentv_ci.cli.progress import show_progress
from agentv_ci.compile.overrides import Overrides
from agentv_ci.contracts.exchange import World
from agentv_ci.errors import Interrupted, UsageError
from agentv_ci.execute.engine import RunSettings
from agentv_ci.load.environment import with_dotenv
from agentv_ci.pipeline.compiling import Compiled, Selection, compile_paths, only_changed
from agentv_ci.pipeline.running import Outcome, RunFiles, run_plan
from agentv_ci.report.reporters import ResultsFormat, terminal

SHARE = click.FloatRange(0, 1)


@click.command("eval")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@targets_option
@target_option
@eval_id_option
@click.option(
    "--only-changed",
    "old_plan",
    metavar="OLD_PLAN",
    help="Only cases that this plan does not have; written by `compile`.",
)
@click.option("--out", metavar="PATH", help="Results file; default: .agentv/results/eval_<timestamp>.<format>.")
@click.option("--output-format", "form", type=click.Choice(["jsonl", "yaml"]), default="jsonl", show_default=True)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Cases at once (default: 1, in order, one at a time; more run in parallel and end in any order). "
    "Overrides the targets' own `workers`.",
)
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="Trials per case.")
@click.option("--seed", type=int, metavar="N", help="Trial n uses seed N + n - 1.")
@click.option(
    "--agent-timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="Seconds per attempt (default: 600).",
)
@click.option(
    "--max-retries",
    type=click.IntRange(min=0),
    metavar="N",
    help="Attempts again after a timeout or a failed command (default: 2).",
)
@click.option("--dry-run", is_flag=True, help="The mock answers for every target and judge; nothing is gated.")
@click.option("--include-trace", is_flag=True, help="Keep full output messages in the rows.")
@click.option("--threshold", type=SHARE, metavar="X", help="Score at which a case passes (default: 0.8).")
@click.option("--min-pass-rate", type=SHARE, metavar="X", help="Gate: least share of graded cases that pass.")
@click.option("--min-mean-score", type=SHARE, metavar="X", help="Gate: least mean score.")
@click.option("--max-errors", type=click.IntRange(min=0), metavar="N", help="Gate: most errors.")
@click.option("--junit", metavar="FILE", help="Write JUnit XML too.")
@click.option("--verbose", is_flag=True, help="Tell every question, retry and verdict on standard error.")
@color_option
def command(
    paths: tuple[str, ...],
    targets: str | None,
    target: str | None,
    eval_ids: tuple[str, ...],
    old_plan: str | None,
    out: str | None,
    form: ResultsFormat,
    workers: int | None,
    repeat: int | None,
    seed: int | None,
    agent_timeout: float | None,
    max_retries: int | None,
    dry_run: bool,
    include_trace: bool,
    threshold: float | None,
    min_pass_rate: float | None,
    min_mean_score: float | None,
    max_errors: int | None,
    junit: str | None,
    verbose: bool,
) -> int:
    """Run eval files, folders, globs or one plan: ask the targets, judge the answers, report, gate.

    \b
    Examples:
      agentv-ci eval evals/example.test.yaml
      agentv-ci eval evals/ --target gpt --workers 8 --junit junit.xml
      agentv-ci eval plan.json --eval-id 'refund-*' --repeat 3
      agentv-ci eval evals/ --only-changed plan-of-main.json
    """
    cwd = Path.cwd()
    compiled = compile_paths(Selection(paths, targets, target, eval_ids), cwd=cwd)
    show_diagnostics(compiled.origin.warnings, err=True)
    left_out = None
    if old_plan is not None:
        everything = len(compiled.plan.cases)
        compiled = only_changed(compiled, cwd / old_plan)
        left_out = f"{everything - len(compiled.plan.cases)} of {everything} cases left out: as in {old_plan}"
        show_line(left_out, "warn", err=True)
    overrides = Overrides(
        repeat=repeat,
        seed=seed,
        threshold=threshold,
        timeout_s=agent_timeout,
        max_retries=max_retries,
        min_pass_rate=min_pass_rate,
        min_mean_score=min_mean_score,
        max_errors=max_errors,
    )
    settings = RunSettings(root=compiled.origin.root, workers=workers, dry_run=dry_run, include_trace=include_trace)
    if out == "-":
        raise UsageError("rows go into a file that later commands read; name one with --out")
    results = Path(out) if out else Path(".agentv", "results", f"eval_{_stamp()}.{form}")
    files = RunFiles(cwd / results, form, cwd / junit if junit else None)
    outcome = _run(compiled, overrides, settings, files, verbose=verbose)
    _show(outcome, results, files, cwd)
    if left_out is not None:
        show_line(left_out, "warn")
    return outcome.report.gate.exit_code


def _stamp() -> str:
    # To the microsecond: two runs of one second are two files.
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ").replace(".", "_")


def _run(compiled: Compiled, overrides: Overrides, settings: RunSettings, files: RunFiles, *, verbose: bool) -> Outcome:
    world = World(
        environ=with_dotenv(os.environ, compiled.origin.dotenv_files),
        now=lambda: datetime.now(UTC),
        monotonic=time.monotonic,
        sleep=asyncio.sleep,
        uniform=random.uniform,
    )

    def log(line: str) -> None:
        if verbose:
            click.echo(line, err=True)

    def warn(sentence: str) -> None:
        show_line(f"warning: {sentence}", "warn", err=True)

    async def main() -> Outcome:
        _cancel_on_sigterm()
        async with show_progress(live=not verbose) as watch:
            return await run_plan(compiled, overrides, settings, files, world=world, log=log, warn=warn, watch=watch)

    try:
        return asyncio.run(main())
    except (asyncio.CancelledError, KeyboardInterrupt) as error:
        raise Interrupted("interrupted; finished rows are kept") from error
    except OSError as error:
        raise UsageError(f"cannot write '{error.filename or files.results}': {error.strerror}") from error


def _cancel_on_sigterm() -> None:
    """SIGTERM ends a run like Ctrl-C: children are killed, finished rows are kept."""
    task = asyncio.current_task()
    assert task is not None
    with contextlib.suppress(NotImplementedError):  # Windows has no signal handlers on the loop
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _show(outcome: Outcome, results: Path, files: RunFiles, cwd: Path) -> None:
    for line in terminal.render(outcome.report, outcome.cases):
        show_line(line.text, line.style)
    show_line(f"results: {results}", "plain")
    show_line(f"report: {_short(files.report, cwd)}", "plain")
    if files.junit:
        show_line(f"junit: {_short(files.junit, cwd)}", "plain")


def _short(path: Path, cwd: Path) -> Path:
    return path.relative_to(cwd) if path.is_relative_to(cwd) else path
