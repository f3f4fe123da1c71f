"""`agentv-ci rescore`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from agentv_ci.app.compile import Selection
from agentv_ci.app.concluding import RunFiles
from agentv_ci.app.rescore import prepare_rescoring, rescore
from agentv_ci.cli.options import (
    FILE,
    color_option,
    eval_id_option,
    form_and_name,
    form_option,
    gate_options,
    report_options,
    reports_of,
    target_option,
    targets_option,
    verbose_option,
    workers_option,
)
from agentv_ci.cli.output import show_diagnostics, show_line
from agentv_ci.cli.running import run, show_outcome, show_warning, unheard
from agentv_ci.compile.overrides import Overrides
from agentv_ci.execute.run import RunSettings
from agentv_ci.results.forms import ResultsFormat


@click.command("rescore")
@click.argument("results", metavar="RESULTS")
@click.argument("paths", nargs=-1, metavar="[PATH…]")
@targets_option
@target_option
@eval_id_option
@click.option("--out", type=FILE, metavar="PATH", help="Results file; default: <results>.rescored.<format>.")
@form_option
@workers_option
@click.option("--dry-run", is_flag=True, help="The mock answers for every judge; nothing is gated.")
@gate_options
@report_options
@verbose_option
@color_option
def command(
    results: str,
    paths: tuple[str, ...],
    targets: str | None,
    target: str | None,
    eval_ids: tuple[str, ...],
    out: str | None,
    form: ResultsFormat | None,
    workers: int | None,
    dry_run: bool,
    threshold: float | None,
    min_pass_rate: float | None,
    min_mean_score: float | None,
    max_errors: int | None,
    verbose: bool,
    **reports: str | None,
) -> int:
    """Score the answers of an earlier run with today's evaluators; no target is asked, only judges are.

    PATH: eval files, folders, globs or one plan; default: the eval files that the rows name. They are compiled for the
    target that answered. Answers of cases whose question has changed since are scored all the same. Evaluators of
    tool calls need a run with --include-trace.

    \b
    Examples:
      agentv-ci rescore out/results.jsonl
      agentv-ci rescore out/results.jsonl evals/refunds.yaml --eval-id 'refund-*' --verbose
      agentv-ci rescore out/results.jsonl plan.json --out again.jsonl
    """
    cwd = Path.cwd()
    stored = cwd / results
    rescoring = prepare_rescoring(stored, Selection(paths, targets, target, eval_ids), cwd=cwd)
    origin = rescoring.compiled.origin
    with unheard():
        show_diagnostics(origin.warnings, err=True)
    for sentence in rescoring.left_out:
        show_warning(sentence)
    overrides = Overrides(
        threshold=threshold, min_pass_rate=min_pass_rate, min_mean_score=min_mean_score, max_errors=max_errors
    )
    settings = RunSettings(root=origin.root, workers=workers, dry_run=dry_run or rescoring.is_dry_run)
    how = form_and_name(form, out)
    written = cwd / out if out else stored.with_suffix(f".rescored.{how}")
    files = RunFiles(written, how, reports_of(reports, cwd))
    work = partial(rescore, rescoring, overrides, settings, files)
    outcome = run(work, files, dotenv_files=origin.dotenv_files, verbose=verbose)
    show_outcome(outcome, files.written, cwd)
    for sentence in rescoring.left_out:
        show_line(sentence, "warn")
    return outcome.report.gate.exit_code
