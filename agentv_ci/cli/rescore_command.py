"""`agentv-ci rescore`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from agentv_ci.app.report_files import RunFiles
from agentv_ci.app.rescore import prepare_rescoring, rescore
from agentv_ci.cli.console import ignoring_lost_output, show_diagnostics, show_line, show_outcome, show_warning
from agentv_ci.cli.options import (
    FILE,
    GateOptions,
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
from agentv_ci.cli.running import run
from agentv_ci.compile.overrides import Overrides
from agentv_ci.execute.run_services import RunOptions
from agentv_ci.results.files import ResultsFormat


@dataclass(frozen=True, kw_only=True)
class RescoreOptions:
    """What `rescore` is given."""

    results: str = argument(metavar="RESULTS")
    paths: tuple[str, ...] = argument(nargs=-1, metavar="[PATH…]")
    selection: SelectionOptions = field(metadata=part(SelectionOptions))
    out: str | None = option(
        "--out", type=FILE, metavar="PATH", help="Results file; default: <results>.rescored.<format>."
    )
    form: ResultsFormat | None = form_option()  # noqa: RUF009  # a declaration
    workers: int | None = workers_option()
    dry_run: bool = option("--dry-run", is_flag=True, help="The mock answers for every judge; nothing is gated.")
    gate: GateOptions = field(metadata=part(GateOptions))
    reports: ReportOptions = field(metadata=part(ReportOptions))
    verbose: bool = verbose_option()

    def files(self, cwd: Path) -> RunFiles:
        """Return where results and reports go; raises UsageError where their names do not fit."""
        form = form_and_name(self.form, self.out)
        results = cwd / self.out if self.out else (cwd / self.results).with_suffix(f".rescored.{form}")
        return RunFiles(results, form, self.reports.at(cwd))


@click.command("rescore")
@takes(RescoreOptions)
def command(options: RescoreOptions) -> int:
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
    rescoring = prepare_rescoring(cwd / options.results, options.selection.of(options.paths), cwd=cwd)
    origin = rescoring.compiled.origin
    with ignoring_lost_output():
        show_diagnostics(origin.warnings, err=True)
    for sentence in rescoring.left_out:
        show_warning(sentence)
    dry_run = options.dry_run or rescoring.is_dry_run
    how = RunOptions(root=origin.root, workers=options.workers, dry_run=dry_run)
    files = options.files(cwd)
    work = partial(rescore, rescoring, Overrides(**vars(options.gate)), how, files)
    outcome = run(work, files, dotenv_files=origin.dotenv_files, verbose=options.verbose)
    show_outcome(outcome, files.written, cwd)
    for sentence in rescoring.left_out:
        show_line(sentence, "warn")
    return outcome.report.gate.exit_code
