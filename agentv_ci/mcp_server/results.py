"""Tools that read results: report, compare."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.comparison.comparison import CONFIDENCE
from agentv_ci.analysis.comparison.statement import Terms
from agentv_ci.app.results.compare import compare_files
from agentv_ci.app.results.report import report_results
from agentv_ci.app.run.files import NO_REPORTS, RunOutcome, report_path
from agentv_ci.app.run.latest import latest_results
from agentv_ci.contracts.source import relative
from agentv_ci.errors import UsageError
from agentv_ci.mcp_server.answers import Answer
from agentv_ci.mcp_server.documents import PathName
from agentv_ci.mcp_server.repository import Repository

BASELINE = ".agentv/baseline.json"


class ResultTools:
    """The tools, each of which answers with JSON; raises CannotGoOn."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def report(self, results: PathName | None = None) -> Answer:
        """Report on finished results: the gate, counts, and why cases did not pass.

        Default: the latest results.
        """
        name = self._named(results)
        outcome = report_results(
            (name,), None, NO_REPORTS, cwd=self._repository.root, expected_shards=None
        )
        return {"results": name, **outcome_answer(outcome)}

    def compare(self, base: PathName = BASELINE, head: PathName | None = None) -> Answer:
        """Show what got worse from one run or baseline to another.

        Default: from the baseline to the latest results.
        """
        name = self._named(head)
        older, newer = self._file(base), self._file(name)
        compared = compare_files(
            older, newer, Terms(CONFIDENCE), names=(base, name), now=datetime.now(UTC)
        )
        return compared.model_dump(exclude_none=True)

    def _file(self, name: str) -> Path:
        """Return the path of results, which are in the repository, as is their run report.

        Raises UsageError.
        """
        path = self._repository.file(name)
        self._repository.require_inside([report_path(path)])
        return path

    def _named(self, results: str | None) -> str:
        """Return the name of results in the repository; raises UsageError."""
        root = self._repository.root
        if results is None:
            latest = latest_results(root)
            if latest is None:
                raise UsageError(
                    "there are no results", hint="run `agentv-ci eval`, or name a results file"
                )
            results = relative(latest, root)
        self._file(results)
        return results


def outcome_answer(outcome: RunOutcome) -> Answer:
    """Return what became of a run: figures, and the cases that did not pass."""
    report = outcome.report
    gate = report.gate
    return {
        "verdict": gate.verdict,
        "exit_code": gate.exit_code,
        "reasons": [*gate.reasons],
        "stopped": report.stopped,
        "dry_run": report.dry_run,
        "counts": report.counts.model_dump(),
        "statistics": report.statistics.model_dump(exclude={"histogram"}),
        "cost_usd": report.cost_usd,
        "cost_per_pass_usd": report.cost_per_pass_usd,
        "cases_not_passed": [
            _case_answer(each) for each in outcome.cases if each.verdict != "pass"
        ],
    }


def _case_answer(case: CaseOutcome) -> Answer:
    findings = [f"{each.title}: {each.text or each.verdict}" for each in case.findings]
    return {
        "id": case.case.id,
        "path": Path(case.case.source.path).as_posix(),
        "line": case.case.source.line,
        "target": case.target,
        "verdict": case.verdict,
        "score": case.score,
        "reasons": findings or [case.summary],
        "answer": case.worst.answer if case.worst is not None else "",
    }
