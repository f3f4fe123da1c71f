"""`agentv-ci report`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import click

from agentv_ci.app.report import report_results
from agentv_ci.app.report_files import RunFiles
from agentv_ci.cli.console import show_outcome
from agentv_ci.cli.options import FILE, Count, ReportOptions, argument, option, part, takes
from agentv_ci.results.files import form_of


@dataclass(frozen=True, kw_only=True)
class ReportCommandOptions:
    """What `report` is given."""

    results: tuple[str, ...] = argument(nargs=-1, required=True, metavar="RESULTS…")
    expect_shards: int | None = option(
        "--expect-shards",
        type=Count(min=1),
        metavar="N",
        help="The files must be exactly the N parts of one plan; what is missing, doubled or foreign fails the gate.",
    )
    out: str | None = option(
        "--out", type=FILE, metavar="FILE", help="Write all rows there too, with a run report beside them."
    )
    baseline: str | None = option(
        "--baseline", type=FILE, metavar="FILE", help="Gate: no regression against this baseline, or these results."
    )
    reports: ReportOptions = field(metadata=part(ReportOptions))


@click.command("report")
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
    reports = options.reports.at(cwd)
    out = cwd / options.out if options.out else None
    files = RunFiles(out, form_of(out), reports) if out is not None else None
    outcome = report_results(
        options.results,
        files,
        reports,
        cwd=cwd,
        expected_shards=options.expect_shards,
        baseline=cwd / options.baseline if options.baseline else None,
        now=datetime.now(UTC),
    )
    show_outcome(outcome, files.written if files is not None else reports.named, cwd)
    return outcome.report.gate.exit_code
