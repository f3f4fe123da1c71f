"""Results → one report: merges shards and writes the reports of a run again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from agentv_ci.analysis.cases.quarantine import quarantine_in
from agentv_ci.analysis.comparison.answers import Rows
from agentv_ci.analysis.comparison.comparison import BaselineComparison
from agentv_ci.analysis.merging import Part, merge
from agentv_ci.app.run.baseline import baseline_comparison
from agentv_ci.app.run.files import (
    Reports,
    RunFiles,
    RunOutcome,
    named_again,
    read_run_report,
    report_path,
    require_distinct,
    require_writable,
    write_reports,
)
from agentv_ci.app.run.validations import validate_runs
from agentv_ci.base.atomic import refuse_to_overwrite, write_whole
from agentv_ci.contracts.experiment_report import ExperimentReport
from agentv_ci.contracts.gate import WhenUndecided
from agentv_ci.contracts.report import GateSettings, ScenarioReport, quarantine_of
from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import NothingToRun
from agentv_ci.load.discover import find_root, targets_in
from agentv_ci.results.files import form, read_rows, scan_rows

R = TypeVar("R")


class Against(Struct, frozen=True):
    """What results are compared with."""

    baseline: Path
    now: datetime
    allows_changes: bool = False
    """Whether judges, models, questions and evaluators may differ."""
    when_undecided: WhenUndecided | None = None
    """What an undecided comparison counts as; None: what the gate says."""

    def comparison(self, head: str, rows: Rows) -> BaselineComparison:
        """Return the comparison with results of this name; raises UsageError."""
        return baseline_comparison(
            self.baseline,
            head=head,
            rows=rows,
            now=self.now,
            allows_changes=self.allows_changes,
            when_undecided=self.when_undecided,
        )


def report_results(
    names: Sequence[str],
    out: RunFiles | None,
    reports: Reports,
    *,
    cwd: Path,
    expected_shards: int | None,
    against: Against | None = None,
    judge: Callable[[Iterable[ResultRow]], ExperimentReport] | None = None,
) -> RunOutcome:
    """Report on these results files as one run; all rows go to `out`, with a run report beside it.

    With `expected_shards` they must be that many shards of one plan, each named once. `judge` is
    that of an experiment. Raises UsageError for files that cannot be read, NothingToRun when all
    are empty, OSError.
    """
    results = list(map(cwd.joinpath, names))
    again = named_again(results)
    if expected_shards is None:
        require_distinct(results)
    head = out.results.name if out is not None else "these results"
    _require_writable(out, reports, results, against)
    parts = _parts(names, results, again)
    quarantine = quarantine_in(part.report for part in parts if part.report is not None)

    def located(read: Callable[..., Iterator[R]]) -> Iterator[tuple[Part, R]]:
        for part, path in parts.items():
            # Without a run report, the run may not have finished.
            yield from ((part, row) for row in read(path, allow_torn=part.report is None))

    def rows() -> Iterator[ResultRow]:
        return (row for _, row in located(read_rows))

    def scanned() -> Iterator[ResultRow]:
        return (row for _, row in located(scan_rows))

    comparison = against.comparison(head, scanned) if against is not None else None

    def validate(settings: Sequence[GateSettings]) -> Sequence[ScenarioReport]:
        counting = (
            (part.report, row)
            for part, row in located(read_rows)
            if quarantine_of(quarantine, row.case_key) is None
        )
        digests = ((row, report.plan_digest if report else None) for report, row in counting)
        return validate_runs(settings, digests)

    def decide(lost: str | None = None) -> RunOutcome:
        merged = merge(
            [*parts],
            located(scan_rows),
            expected_shards,
            validate=validate,
            against=comparison,
            experiment=judge(rows()) if judge is not None else None,
            repeated=[names[index] for index in again],
            write_error=lost,
        )
        return RunOutcome(*merged)

    if all(part.report is None for part in parts) and next(rows(), None) is None:
        raise NothingToRun("the results are empty")
    outcome = decide()
    written = out.written if out is not None else reports.named
    suites = {case.suite for case in outcome.cases}
    refuse_to_overwrite(written.values(), _documents(results[0], suites))
    if out is not None:
        encode = form(out.form).encode
        lines = (encode(row).encode("utf-8", "replace") for row in rows())
        write_whole(out.results, lambda file: file.writelines(lines))
    return write_reports(outcome, decide, rows, out.report if out is not None else None, reports)


def _require_writable(
    out: RunFiles | None, reports: Reports, results: Sequence[Path], against: Against | None
) -> None:
    """Raise UsageError if an output would overwrite one of the files that are read."""
    inputs = [*results, *map(report_path, results)]
    if against is not None:
        inputs.append(against.baseline)
    if out is not None:
        out.require_writable(inputs)
    else:
        require_writable(reports.files.values(), inputs)


def _parts(
    names: Sequence[str], results: Sequence[Path], again: Collection[int]
) -> dict[Part, Path]:
    """Return the parts of a run, and the file of each; those that are named again are left out."""
    parts: dict[Part, Path] = {}
    for index, (name, path) in enumerate(zip(names, results, strict=True)):
        if index not in again:
            parts[Part(name, read_run_report(path))] = path
    return parts


def _documents(results: Path, suites: Iterable[str]) -> Iterator[Path]:
    """Yield the eval files named in rows, and their targets files.

    They are in the repository of the results.
    """
    root = find_root(results, results.parent)
    paths = list(map(root.joinpath, suites))
    yield from paths
    for folder in {path.parent for path in paths}:
        if (targets := targets_in(folder, root)) is not None:
            yield targets
