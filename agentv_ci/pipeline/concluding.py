"""Rows of a run → its report, in memory and in files."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentv_ci.errors import UsageError
from agentv_ci.pipeline.compiling import Origin
from agentv_ci.pipeline.scenarios import validate_runs

if TYPE_CHECKING:
    from agentv_ci.contracts.plan import Plan
    from agentv_ci.contracts.report import Ending, RunReport, ScenarioReport
    from agentv_ci.contracts.results import ResultRow
    from agentv_ci.report.comparing import Yardstick
    from agentv_ci.report.outcomes import CaseOutcome
    from agentv_ci.report.reporters import ResultsFormat


def report_of(results: Path) -> Path:
    """Return where the run report of a results file lies."""
    known = results.suffix in (".jsonl", ".yaml", ".yml")
    return results.with_suffix(".report.json") if known else results.with_name(f"{results.name}.report.json")


def refuse_folder(path: Path) -> None:
    """Raise UsageError where a file is to be written and a folder lies."""
    if path.is_dir():
        raise UsageError(f"results and reports go into files, and '{path}' is none")


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Where a run leaves what it found."""

    results: Path
    form: ResultsFormat
    junit: Path | None = None

    @property
    def report(self) -> Path:
        """The run report lies beside the results."""
        return report_of(self.results)

    @property
    def written(self) -> dict[str, Path | None]:
        """What lies where when a run has ended."""
        return {"results": self.results, "report": self.report, "junit": self.junit}

    def refuse_to_overwrite(self, origin: Origin) -> None:
        """Raise UsageError when what a run leaves would lie where something else does, or cannot lie."""
        if self.results.name == "-":
            raise UsageError("rows go into a file that later commands read; name one with --out")
        written = [self.results, self.report, *([self.junit] if self.junit else [])]
        origin.refuse_to_overwrite(written)
        for path in written:
            refuse_folder(path)
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
    return publish(outcome, judge, read_rows, files.report, files.junit)


def publish(
    outcome: Outcome,
    judge: Callable[[str], Outcome],
    rows: Callable[[], Iterable[ResultRow]],
    report: Path | None,
    junit: Path | None,
) -> Outcome:
    """Write the reports of a run, and return what it came to then.

    What is lost is part of the verdict: `judge` gives another one, and all reports are written once more. One that then
    cannot be written does not stay either, since it would say something else.
    """
    lost = _write_reports(outcome, rows, report, junit)
    if not lost:
        return outcome
    outcome = judge(next(iter(lost.values())))
    for path in _write_reports(outcome, rows, report, junit).keys() - lost.keys():
        with contextlib.suppress(OSError):
            path.unlink()
    return outcome


def _write_reports(
    outcome: Outcome, rows: Callable[[], Iterable[ResultRow]], report: Path | None, junit: Path | None
) -> dict[Path, str]:
    """Write what is wanted; returns which are not there, and why."""
    writers: list[tuple[Path | None, Callable[[Path], None]]] = [
        (junit, lambda path: _write_junit(outcome, rows(), path)),
        (report, lambda path: _write_report(outcome.report, path)),
    ]
    found = {path: _lost(path, write) for path, write in writers if path is not None}
    return {path: reason for path, reason in found.items() if reason is not None}


def _lost(path: Path, write: Callable[[Path], None]) -> str | None:
    """Write a file as a whole or not at all; returns why it is not there."""
    scratch = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            # A pipe, or a device.
            write(path)
            return None
        write(scratch)
        scratch.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)
        return why(error, path)
    return None


def why(error: Exception, path: Path) -> str:
    """Return why a file is not as it should be, for people."""
    return f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error)


def _write_report(run_report: RunReport, path: Path) -> None:
    """Write a run report; raises OSError."""
    path.write_text(json.dumps(run_report.model_dump(by_alias=True), indent=2) + "\n", encoding="utf-8")


def _write_junit(outcome: Outcome, rows: Iterable[ResultRow], path: Path) -> None:
    """Write a run as JUnit XML; raises OSError."""
    from agentv_ci.report.reporters import junit

    path.write_bytes(junit.render(outcome.report, outcome.cases, rows))
