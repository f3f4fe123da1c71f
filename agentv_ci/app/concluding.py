"""Rows of a run → its report, in memory and in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from agentv_ci.analysis.comparison import Yardstick
from agentv_ci.analysis.gate import gate_settings
from agentv_ci.analysis.run_report import report
from agentv_ci.app.report_files import NO_REPORTS, Outcome, Reports, publish, require_writable
from agentv_ci.app.scenarios import validate_runs
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import Ending, ScenarioReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import UsageError
from agentv_ci.results.files import ResultsFormat, UnreadableResults, read_rows


def report_of(results: Path) -> Path:
    """Return where the run report of a results file lies."""
    known = results.suffix in (".jsonl", ".yaml", ".yml")
    return results.with_suffix(".report.json") if known else results.with_name(f"{results.name}.report.json")


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Where a run leaves what it found."""

    results: Path
    form: ResultsFormat
    reports: Reports = NO_REPORTS

    @property
    def report(self) -> Path:
        """The run report lies beside the results."""
        return report_of(self.results)

    @property
    def written(self) -> dict[str, Path]:
        """What lies where when a run has ended."""
        return {"results": self.results, "report": self.report, **self.reports.named}

    def require_writable(self, sources: Iterable[Path]) -> None:
        """Raise UsageError when what a run leaves would lie where something else does, or cannot lie."""
        if self.results.name == "-":
            raise UsageError("rows go into a file that later commands read; name one with --out")
        require_writable(list(self.written.values()), sources)
        if self.results.exists() and not self.results.is_file():
            raise UsageError(f"results go into a file that can be read again, and '{self.results}' is none")


def conclude(
    plan: Plan,
    files: RunFiles,
    ending: Ending,
    rows: Callable[[], Iterable[ResultRow]] | None = None,
    yardstick: Yardstick | None = None,
) -> Outcome:
    """Write the reports of a run whose rows are written: all that are in the file, or `rows`. Raises OSError."""
    read = rows or (lambda: read_rows(files.results, files.form))
    scenarios: tuple[ScenarioReport, ...] = ()

    def judge(lost: str | None) -> Outcome:
        ended = replace(ending, write_error=ending.write_error or lost)
        return Outcome(*report(plan, read(), ended, scenarios=scenarios, yardstick=yardstick))

    try:
        scenarios = validate_runs(gate_settings(plan), ((row, plan.digest) for row in read()))
        outcome = judge(None)
    except UnreadableResults as error:
        # Another program has changed the file.
        read, yardstick, scenarios = tuple, None, ()
        outcome = judge(str(error))
    return publish(outcome, judge, read, files.report, files.reports)
