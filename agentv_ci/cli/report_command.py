"""`agentv-ci report`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from agentv_ci.app.report import Merging, report_results
from agentv_ci.app.report_files import RunFiles
from agentv_ci.cli.console import show_outcome
from agentv_ci.cli.options import FILE, Count, ReportOptions, color_option, report_options, takes
from agentv_ci.results.files import form_of


@dataclass(frozen=True, kw_only=True)
class ReportCommandOptions(ReportOptions):
    """What `report` is given."""

    results: tuple[str, ...]
    expect_shards: int | None
    out: str | None
    baseline: str | None


@click.command("report")
@click.argument("results", nargs=-1, required=True, metavar="RESULTS…")
@click.option(
    "--expect-shards",
    type=Count(min=1),
    metavar="N",
    help="The files must be exactly the N parts of one plan; what is missing, doubled or foreign fails the gate.",
)
@click.option("--out", type=FILE, metavar="FILE", help="Write all rows there too, with a run report beside them.")
@click.option(
    "--baseline", type=FILE, metavar="FILE", help="Gate: no regression against this baseline, or these results."
)
@report_options
@color_option
@takes(ReportCommandOptions)
def command(options: ReportCommandOptions) -> int:
    """Report results again, or several files as one run: the summary, and the gate that was set when they ran.

    The gate's settings are in the run reports that lie beside the results. The exit status is that of `eval`.

    \b
    Examples:
      agentv-ci report .agentv/results/eval.jsonl
      agentv-ci report part-*.jsonl --expect-shards 4 --out all.jsonl --junit junit.xml
      agentv-ci report results.jsonl --html report.html --markdown summary.md
    """
    cwd = Path.cwd()
    out = cwd / options.out if options.out else None
    files = RunFiles(out, form_of(out)) if out is not None else None
    reports = options.reports(cwd)
    merging = Merging(
        results=[cwd / each for each in options.results],
        names=options.results,
        expected_shards=options.expect_shards,
        out=files,
        reports=reports,
        baseline=cwd / options.baseline if options.baseline else None,
    )
    outcome = report_results(merging, now=datetime.now(UTC))
    show_outcome(outcome, {**(files.written if files is not None else {}), **reports.named}, cwd)
    return outcome.report.gate.exit_code
