"""Rows of a run → its report, in memory and in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from agentv_ci.analysis.comparison import BaselineComparison
from agentv_ci.analysis.gate import gate_settings
from agentv_ci.analysis.run_report import report
from agentv_ci.app.check import validate_runs
from agentv_ci.app.report_files import Outcome, RunFiles, write_reports
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import Ending, ScenarioReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.results.files import UnreadableResults, read_rows


def conclude(
    plan: Plan,
    files: RunFiles,
    ending: Ending,
    rows: Callable[[], Iterable[ResultRow]] | None = None,
    against: BaselineComparison | None = None,
) -> Outcome:
    """Write the reports of a run whose rows are written: all that are in the file, or `rows`. Raises OSError."""
    read = rows or (lambda: read_rows(files.results, files.form))
    scenarios: tuple[ScenarioReport, ...] = ()

    def judge(lost: str | None) -> Outcome:
        ended = replace(ending, write_error=ending.write_error or lost)
        return Outcome(*report(plan, read(), ended, scenarios=scenarios, against=against))

    try:
        scenarios = validate_runs(gate_settings(plan), ((row, plan.digest) for row in read()))
        outcome = judge(None)
    except UnreadableResults as error:
        # Another program has changed the file.
        read, against, scenarios = tuple, None, ()
        outcome = judge(str(error))
    return write_reports(outcome, judge, read, files.report, files.reports)
