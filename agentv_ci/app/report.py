"""Results → one report: shards are merged, and whatever a run reports is reported again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from agentv_ci.analysis.merging import Part, merge
from agentv_ci.app.check import validate_runs
from agentv_ci.app.compare import baseline_comparison
from agentv_ci.app.report_files import (
    Outcome,
    Reports,
    RunFiles,
    read_run_report,
    report_path,
    require_distinct,
    require_writable,
    write_reports,
)
from agentv_ci.atomic import refuse_to_overwrite, replacing
from agentv_ci.contracts.report import GateSettings, ScenarioReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import NothingToRun
from agentv_ci.load.discover import find_root, targets_in
from agentv_ci.results.files import form, read_rows


@dataclass(frozen=True, slots=True)
class Merging:
    """Result files that are reported as one run."""

    results: Sequence[Path]
    names: Sequence[str]
    """As people call them."""
    expected_shards: int | None
    """How many parts of one plan they must be; None: they may be anything."""
    out: RunFiles | None
    """Where all rows go together, with a run report beside them."""
    reports: Reports
    baseline: Path | None = None
    """What they are compared with."""


def report_results(merging: Merging, *, now: datetime) -> Outcome:
    """Report several result files as one run.

    Raises UsageError for what cannot be read, NothingToRun when there is nothing in them, OSError.
    """
    against = None
    if merging.baseline is not None:
        head = merging.out.results.name if merging.out is not None else "these results"
        against = baseline_comparison(merging.baseline, head=head, now=now)
    _require_writable(merging)
    parts = [Part(name, read_run_report(path)) for path, name in zip(merging.results, merging.names, strict=True)]

    def located() -> Iterator[tuple[Part, ResultRow]]:
        for part, path in zip(parts, merging.results, strict=True):
            # Without a run report the run may not have come to its end.
            yield from ((part, row) for row in read_rows(path, allow_torn=part.report is None))

    def rows() -> Iterator[ResultRow]:
        return (row for _, row in located())

    def validate(settings: Sequence[GateSettings]) -> Sequence[ScenarioReport]:
        digests = ((row, part.report.plan_digest if part.report else None) for part, row in located())
        return validate_runs(settings, digests)

    def judge(lost: str | None = None) -> Outcome:
        expected = merging.expected_shards
        return Outcome(*merge(parts, located(), expected, validate=validate, against=against, write_error=lost))

    if all(part.report is None for part in parts) and next(rows(), None) is None:
        raise NothingToRun("these files have no rows")
    outcome = judge()
    written = [*(merging.out.written.values() if merging.out is not None else ()), *merging.reports.files.values()]
    refuse_to_overwrite(written, _documents(merging.results[0], {each.case.suite for each in outcome.cases}))
    if merging.out is not None:
        _write_rows(merging.out, rows())
    report = merging.out.report if merging.out is not None else None
    return write_reports(outcome, judge, rows, report, merging.reports)


def _require_writable(merging: Merging) -> None:
    require_distinct(merging.results)
    inputs = [each for path in merging.results for each in (path, report_path(path))]
    if merging.baseline is not None:
        inputs.append(merging.baseline)
    if merging.out is not None:
        replace(merging.out, reports=merging.reports).require_writable(inputs)
    else:
        require_writable(merging.reports.files.values(), inputs)


def _documents(results: Path, suites: Iterable[str]) -> Iterator[Path]:
    """Yield the eval files that rows name, and their targets, where they lie in the repository of the results."""
    root = find_root(results, results.parent)
    paths = [root / suite for suite in suites]
    yield from paths
    for folder in {path.parent for path in paths}:
        if (targets := targets_in(folder, root)) is not None:
            yield targets


def _write_rows(files: RunFiles, rows: Iterator[ResultRow]) -> None:
    encode = form(files.form).encode
    files.results.parent.mkdir(parents=True, exist_ok=True)
    with replacing(files.results) as file:
        file.writelines(encode(row).encode("utf-8", "replace") for row in rows)
