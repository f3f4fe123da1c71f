"""Rows of a run → its report, in memory and in files."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentv_ci.errors import UsageError
from agentv_ci.pipeline.compiling import Origin
from agentv_ci.pipeline.scenarios import validate_runs
from agentv_ci.report.links import NO_LINKS, Links

if TYPE_CHECKING:
    from agentv_ci.contracts.plan import Plan
    from agentv_ci.contracts.report import Ending, RunReport, ScenarioReport
    from agentv_ci.contracts.results import ResultRow
    from agentv_ci.report.comparing import Yardstick
    from agentv_ci.report.outcomes import CaseOutcome
    from agentv_ci.report.reporters import ReportFormat, ResultsFormat


def report_of(results: Path) -> Path:
    """Return where the run report of a results file lies."""
    known = results.suffix in (".jsonl", ".yaml", ".yml")
    return results.with_suffix(".report.json") if known else results.with_name(f"{results.name}.report.json")


def refuse_to_overwrite(paths: Sequence[Path], origin: Origin) -> None:
    """Raise UsageError where something is to be written and something else, or a folder, lies."""
    origin.refuse_to_overwrite(paths)
    for path in paths:
        if path.is_dir():
            raise UsageError(f"results and reports go into files, and '{path}' is none")


@dataclass(frozen=True, slots=True)
class Reports:
    """Which reports are wanted of a run, and where."""

    files: Mapping[ReportFormat, Path] = field(default_factory=dict)
    links: Links = NO_LINKS

    @property
    def named(self) -> dict[str, Path]:
        """What lies where."""
        return {str(name): path for name, path in self.files.items()}


NO_REPORTS = Reports()


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

    def refuse_to_overwrite(self, origin: Origin) -> None:
        """Raise UsageError when what a run leaves would lie where something else does, or cannot lie."""
        if self.results.name == "-":
            raise UsageError("rows go into a file that later commands read; name one with --out")
        refuse_to_overwrite(list(self.written.values()), origin)
        if self.results.exists() and not self.results.is_file():
            raise UsageError(f"results go into a file that can be read again, and '{self.results}' is none")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    report: RunReport
    cases: tuple[CaseOutcome, ...]


def conclude(
    plan: Plan,
    files: RunFiles,
    ending: Ending,
    rows: Callable[[], Iterable[ResultRow]] | None = None,
    yardstick: Yardstick | None = None,
) -> Outcome:
    """Write the reports of a run whose rows are written: all that are in the file, or `rows`. Raises OSError."""
    from agentv_ci.report import report
    from agentv_ci.report.gate import settings_of
    from agentv_ci.report.reporters import read

    def written() -> Iterator[ResultRow]:
        return read(files.results, files.form)

    read_rows = rows or written
    scenarios: tuple[ScenarioReport, ...] = ()

    def judge(lost: str | None) -> Outcome:
        ended = replace(ending, write_error=ending.write_error or lost)
        return Outcome(*report(plan, read_rows(), ended, scenarios=scenarios, yardstick=yardstick))

    try:
        scenarios = validate_runs(settings_of(plan), ((row, plan.digest) for row in read_rows()))
        outcome = judge(None)
    except (OSError, ValueError, UsageError) as error:
        # Somebody else has had their hands on the file.
        read_rows, yardstick = tuple, None
        scenarios = ()
        outcome = judge(why(error, files.results))
    return publish(outcome, judge, read_rows, files.report, files.reports)


def publish(
    outcome: Outcome,
    judge: Callable[[str], Outcome],
    rows: Callable[[], Iterable[ResultRow]],
    report: Path | None,
    reports: Reports,
) -> Outcome:
    """Write the reports of a run, and return what it came to then.

    What is lost is part of the verdict: `judge` gives another one, and all reports are written once more. One that then
    cannot be written does not stay either, since it would say something else.
    """
    lost = _write_reports(outcome, rows, report, reports)
    if not lost:
        return outcome
    outcome = judge(next(iter(lost.values())))
    for path in _write_reports(outcome, rows, report, reports).keys() - lost.keys():
        with contextlib.suppress(OSError):
            path.unlink()
    return outcome


def _write_reports(
    outcome: Outcome, rows: Callable[[], Iterable[ResultRow]], report: Path | None, reports: Reports
) -> dict[Path, str]:
    """Write what is wanted; returns which are not there, and why."""
    from agentv_ci.report.reported import ReportedRun
    from agentv_ci.report.reporters import reporter

    run = ReportedRun(outcome.report, outcome.cases, rows, reports.links)
    found = {path: _lost(path, partial(reporter(name).render, run)) for name, path in reports.files.items()}
    if report is not None:
        found[report] = _lost(report, lambda: [_encoded(outcome.report)])
    return {path: reason for path, reason in found.items() if reason is not None}


def _lost(path: Path, pieces: Callable[[], Iterable[bytes]]) -> str | None:
    """Write a file as a whole or not at all; returns why it is not there."""
    scratch = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            # A pipe, or a device.
            _write(path, pieces())
            return None
        _write(scratch, pieces())
        scratch.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)
        return why(error, path)
    return None


def why(error: Exception, path: Path) -> str:
    """Return why a file is not as it should be, for people."""
    return f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error)


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(pieces)


def _encoded(run_report: RunReport) -> bytes:
    return (json.dumps(run_report.model_dump(by_alias=True), indent=2) + "\n").encode()
