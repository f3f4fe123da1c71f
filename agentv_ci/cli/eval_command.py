"""`agentv-ci eval`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from agentv_ci.cli.options import (
    Range,
    color_option,
    eval_id_option,
    form_option,
    gate_options,
    junit_option,
    target_option,
    targets_option,
    verbose_option,
    workers_option,
)
from agentv_ci.cli.output import show_diagnostics, show_line
from agentv_ci.cli.running import run, show_outcome, stamp
from agentv_ci.compile.overrides import Overrides
from agentv_ci.execute.engine import RunSettings
from agentv_ci.pipeline.compiling import Selection, compile_paths, only_changed
from agentv_ci.pipeline.running import RunFiles, run_plan
from agentv_ci.report.reporters import ResultsFormat


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
@form_option
@workers_option
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="Trials per case.")
@click.option("--seed", type=int, metavar="N", help="Trial n uses seed N + n - 1.")
@click.option(
    "--agent-timeout",
    type=Range(min=0, min_open=True),
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
@gate_options
@junit_option
@verbose_option
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
    results = Path(out) if out else Path(".agentv", "results", f"eval_{stamp()}.{form}")
    files = RunFiles(cwd / results, form, cwd / junit if junit else None)
    work = partial(run_plan, compiled, overrides, settings, files)
    outcome = run(work, files, dotenv_files=compiled.origin.dotenv_files, verbose=verbose)
    show_outcome(outcome, files, cwd)
    if left_out is not None:
        show_line(left_out, "warn")
    return outcome.report.gate.exit_code
