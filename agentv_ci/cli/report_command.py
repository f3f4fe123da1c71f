"""`agentv-ci report`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import click

from agentv_ci.app.results.report import Against, report_results
from agentv_ci.app.run.files import RunFiles
from agentv_ci.cli.console import show_outcome
from agentv_ci.cli.defaults import require_latest
from agentv_ci.cli.options import (
    BaselineOptions,
    Command,
    Count,
    argument,
    gate_option,
    part,
    path_in,
    report_option,
    takes,
)
from agentv_ci.cli.report_options import ReportOptions, form_and_name


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ReportCommandOptions:
    """Options of `report`."""

    results: tuple[str, ...] = argument(nargs=-1, metavar="[RESULTS…]")
    expect_shards: int | None = gate_option(
        "--expect-shards",
        type=Count(min=1),
        help="Fail unless the files are exactly the N shards of one plan.",
    )
    against: BaselineOptions = field(metadata=part(BaselineOptions))
    out: str | None = report_option(
        "--out", help="Write all rows to FILE, with a run report beside it."
    )
    reports: ReportOptions = field(metadata=part(ReportOptions))


@click.command("report", cls=Command)
@takes(ReportCommandOptions)
def command(options: ReportCommandOptions) -> int:
    """Report on finished results: print the summary, apply the gate and write reports.

    RESULTS defaults to the latest in .agentv/results/. Several files, such as shards, are merged into one run. The
    settings of the gate come from the run reports beside the results. Exit codes are those of `eval`.

    \b
    Examples:
      agentv-ci report
      agentv-ci report --html report.html --markdown summary.md
      agentv-ci report part-*.jsonl --expect-shards 2 --out all.jsonl --junit junit.xml
    """
    cwd = Path.cwd()
    reports = options.reports.at(cwd)
    files = None
    if out := path_in(cwd, options.out):
        files = RunFiles(out, form_and_name(None, options.out), reports)
    against, terms = None, options.against
    if baseline := terms.path(cwd):
        against = Against(baseline, datetime.now(UTC), terms.allow_changes, terms.undecided)
    outcome = report_results(
        options.results or (require_latest(cwd),),
        files,
        reports,
        cwd=cwd,
        expected_shards=options.expect_shards,
        against=against,
    )
    show_outcome(outcome, files.written if files is not None else reports.named, cwd)
    return outcome.report.gate.exit_code
