"""Conclude a run: decide its verdict from its rows, and write its reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentv_ci.analysis.gate import gate_settings
from agentv_ci.analysis.run_report import report
from agentv_ci.app.run.files import RunFiles, RunOutcome, why, write_reports
from agentv_ci.app.run.validations import validate_runs
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import Ending, ScenarioReport, quarantine_of
from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import UsageError
from agentv_ci.results.files import UnreadableResults
from agentv_ci.results.resume import ResumedResults

if TYPE_CHECKING:
    from agentv_ci.analysis.comparison.comparison import BaselineComparison
    from agentv_ci.contracts.experiment_report import ExperimentReport


def conclude(
    plan: Plan,
    files: RunFiles,
    ending: Ending,
    rows: Callable[[], Iterable[ResultRow]] | None = None,
    against: BaselineComparison | None = None,
    judge: Callable[[Iterable[ResultRow]], ExperimentReport] | None = None,
) -> RunOutcome:
    """Write the reports of a run from the rows in its results file, or from `rows`.

    `judge` is that of an experiment.

    Raises OSError.
    """
    read = rows or files.rows
    scan: Callable[[], Iterable[ResultRow]] = rows or files.scan
    scenarios: tuple[ScenarioReport, ...] = ()

    def decide(lost: str | None) -> RunOutcome:
        ended = replace(ending, write_error=ending.write_error or lost)
        if judge is not None:
            ended = replace(ended, experiment=judge(read()))
        return RunOutcome(*report(plan, scan(), ended, scenarios=scenarios, against=against))

    try:
        gates = (row for row in read() if quarantine_of(ending.quarantine, row.case_key) is None)
        scenarios = validate_runs(gate_settings(plan), ((row, plan.digest) for row in gates))
        outcome = decide(None)
    except UnreadableResults as error:
        # Another program changed the file.
        read, scan, against, scenarios = tuple, tuple, None, ()
        outcome = decide(str(error))
    return write_reports(outcome, decide, read, files.report, files.reports)


def conclude_resumed(
    plan: Plan,
    files: RunFiles,
    ending: Ending,
    results: ResumedResults,
    against: BaselineComparison | None,
    judge: Callable[[Iterable[ResultRow]], ExperimentReport] | None = None,
) -> RunOutcome:
    """Conclude a run that continued an earlier one, without rows of other plans; raises OSError."""
    # An interrupted run may have been started by mistake: keep all earlier rows.
    if ending.stopped != "interrupted":
        try:
            results.remove_other_rows()
        except (OSError, UsageError) as error:
            ending = replace(ending, write_error=ending.write_error or why(error, files.results))
    return conclude(plan, files, ending, results.rows, against, judge=judge)
