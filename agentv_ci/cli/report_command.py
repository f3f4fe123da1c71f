"""`agentv-ci report`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from agentv_ci.app.compare import yardstick_of
from agentv_ci.app.concluding import RunFiles
from agentv_ci.app.report import Merging, report_results
from agentv_ci.cli.options import FILE, Count, color_option, report_options, reports_of
from agentv_ci.cli.running import show_outcome
from agentv_ci.results.forms import form_of


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
def command(
    results: tuple[str, ...],
    expect_shards: int | None,
    out: str | None,
    baseline: str | None,
    **reports: str | None,
) -> int:
    """Report results again, or several files as one run: the summary, and the gate that was set when they ran.

    The gate's settings are in the run reports that lie beside the results. The exit status is that of `eval`.

    \b
    Examples:
      agentv-ci report .agentv/results/eval.jsonl
      agentv-ci report part-*.jsonl --expect-shards 4 --out all.jsonl --junit junit.xml
      agentv-ci report results.jsonl --html report.html --markdown summary.md
    """
    cwd = Path.cwd()
    written = cwd / out if out else None
    files = RunFiles(written, form_of(written)) if written is not None else None
    wanted = reports_of(reports, cwd)
    head = written.name if written is not None else "these results"
    source = cwd / baseline if baseline else None
    yardstick = yardstick_of(source, head=head, now=datetime.now(UTC)) if source is not None else None
    paths = tuple(cwd / each for each in results)
    outcome = report_results(Merging(paths, results, expect_shards, files, wanted, yardstick, source))
    show_outcome(outcome, {**(files.written if files is not None else {}), **wanted.named}, cwd)
    return outcome.report.gate.exit_code
