"""The files of a run: its results, the run report beside them, and other reports.

All have the same verdict.
"""

from __future__ import annotations

import contextlib
import json
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import ValidationError

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.base.atomic import refuse_to_overwrite, write_whole
from agentv_ci.base.installed_plugins import UnusablePlugin, find_plugin
from agentv_ci.base.left_files import MOST_NAMED_BYTES, read_regular
from agentv_ci.base.model_errors import sentence
from agentv_ci.contracts.base import is_plugin
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.report import RunReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import UsageError
from agentv_ci.jsonschema.schemas import schema_id
from agentv_ci.report.renderers import ReportFormat, plugin, renderer
from agentv_ci.report.view import NO_LINKS, Links, RunView
from agentv_ci.results.files import ResultsFormat, read_rows, scan_rows

if TYPE_CHECKING:
    from agentv_ci.contracts.proof import Proof  # few runs have one


class Reports(Struct, frozen=True):
    """Which reports to write for a run, and where."""

    files: Mapping[ReportFormat, Path] = field(default_factory=dict)
    links: Links = NO_LINKS
    appended: frozenset[Path] = frozenset()
    """Files shared with other runs, such as the summary of a job."""
    plugins: Mapping[str, Path] = field(default_factory=dict)
    """The reports of plugins, by their names."""
    proof: Proof | None = None
    """The proof of the cases, which HTML and Markdown show."""

    @property
    def named(self) -> dict[str, Path]:
        """The path of each report."""
        return {**{str(name): path for name, path in self.files.items()}, **self.plugins}


NO_REPORTS = Reports()

Writer = Callable[[RunView, IO[bytes]], None]
"""Writes a run into a file; raises what reading the rows raises."""


def reports_of_plugins(named: Iterable[str], cwd: Path) -> dict[str, Path]:
    """Return the reports of plugins from texts such as `acme/csv=rows.csv`; raises UsageError."""
    found: dict[str, Path] = {}
    for each in named:
        name, _, file = each.partition("=")
        if not is_plugin(name) or not file.strip():
            raise UsageError(f"--report: '{each}' is not NAME=FILE, such as acme/csv=rows.csv")
        if file == "-":
            raise UsageError(
                f"--report {name} requires a file name; the summary is on standard output"
            )
        if name in found:
            raise UsageError(f"--report {name} is given twice")
        if isinstance(reporter := find_plugin("reporter", name), UnusablePlugin):
            raise UsageError(reporter.message, hint=reporter.hint)
        found[name] = cwd / file
    return found


class RunFiles(Struct, frozen=True):
    """Where a run writes its results and reports."""

    results: Path
    form: ResultsFormat
    reports: Reports = NO_REPORTS
    is_latest: bool = False
    """Whether `latest.jsonl` beside the results is to lead to them, if any case runs."""

    @property
    def report(self) -> Path:
        """The run report beside the results."""
        return report_path(self.results)

    @property
    def written(self) -> dict[str, Path]:
        """The path of each file after a run."""
        return {"results": self.results, "report": self.report, **self.reports.named}

    def rows(self) -> Iterator[ResultRow]:
        """Read the rows of the results; raises UnreadableResults."""
        return read_rows(self.results, self.form)

    def scan(self) -> Iterator[ResultRow]:
        """Read the rows as `scan_rows` does, which is fastest; raises UnreadableResults."""
        return scan_rows(self.results, self.form)

    def require_writable(self, inputs: Iterable[Path]) -> None:
        """Raise UsageError if a file would overwrite something else, or cannot be written."""
        if self.results.name == "-":
            raise UsageError("cannot write results to standard output; use --out FILE")
        require_writable(self.written.values(), inputs)
        if self.results.exists() and not self.results.is_file():
            raise UsageError(f"cannot write results to '{self.results}': it is not a regular file")


class RunOutcome(Struct, frozen=True):
    """The outcome of a run."""

    report: RunReport
    cases: tuple[CaseOutcome, ...]
    lost: frozenset[Path] = frozenset()
    """Reports that could not be written; the verdict has the reason."""


def report_path(results: Path) -> Path:
    """Return the path of the run report of a results file."""
    if results.suffix in (".jsonl", ".yaml", ".yml"):
        return results.with_suffix(".report.json")
    return results.with_name(f"{results.name}.report.json")


def read_run_report(results: Path) -> RunReport | None:
    """Return the run report beside a results file, None if there is none.

    Raises UsageError for a report that cannot be read, and for results that are not a regular file.
    """
    path = report_path(results)
    if results.exists() and not results.is_file():
        raise UsageError(f"cannot read results from '{results}': it is not a regular file")
    unreadable = f"'{path}' is not a run report that this version reads"
    try:
        data = json.loads(read_regular(path, MOST_NAMED_BYTES))
        if isinstance(data, dict) and data.get("$schema") != schema_id("report-v1"):
            raise UsageError(f"{unreadable}: its $schema is {data.get('$schema')}")
        return RunReport.model_validate(data)
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise UsageError(f"{unreadable}: {sentence(error)}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{unreadable}: {error}") from error


def named_again(results: Sequence[Path]) -> list[int]:
    """Return the positions of files that are named before."""
    files = [path.resolve() for path in results]
    return [index for index, file in enumerate(files) if file in files[:index]]


def require_distinct(results: Sequence[Path]) -> None:
    """Raise UsageError if a file is named twice."""
    for index in named_again(results):
        raise UsageError(f"results file '{results[index]}' is named twice")


def require_writable(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise UsageError if an output would overwrite an input or is a folder."""
    outputs = list(outputs)
    refuse_to_overwrite(outputs, inputs)
    for path in outputs:
        if path.is_dir():
            raise UsageError(f"cannot write to '{path}': it is a directory")
        above = next(folder for folder in path.parents if folder.exists())
        if not above.is_dir():
            raise UsageError(f"cannot write to '{path}': '{above}' is not a directory")


def write_reports(
    outcome: RunOutcome,
    decide: Callable[[str], RunOutcome],
    rows: Callable[[], Iterable[ResultRow]],
    report: Path | None,
    reports: Reports,
) -> RunOutcome:
    """Write the reports of a run, and return its outcome then; raises what reading the rows raises.

    A report that cannot be written changes the verdict: `decide` returns the new one, and all files
    are written again. A file that cannot be rewritten is removed, since its verdict is out of date.
    Streams, which cannot be written twice, come last.
    """
    writers: dict[Path, Writer] = {}
    if report is not None:
        writers[report] = _write_report
    for name, path in reports.files.items():
        writers[path] = partial(_render, name)
    for plugin_name, path in reports.plugins.items():
        writers[path] = partial(plugin.write, plugin_name)
    files = [path for path in writers if path not in reports.appended and not _is_special(path)]
    # Pipes last: devices may fail, and then pipes get the new outcome.
    once = sorted(
        writers.keys() - set(files),
        key=lambda path: (path in reports.appended or path.is_fifo(), path),
    )
    lost: dict[Path, str] = {}

    def write(paths: Iterable[Path]) -> dict[Path, str]:
        """Write the current outcome; returns the reports that failed, and why."""
        known = partial(_counted, rows, outcome.cases)
        run = RunView(outcome.report, outcome.cases, known, reports.links, reports.proof)
        reasons: dict[Path, str] = {}
        for path in paths:
            reason = _write(path, writers[path], run, reports)
            if reason is not None:
                reasons[path] = reason
        return reasons

    for group in (files, *([path] for path in once)):
        failed = write(group)
        if failed:
            lost |= failed
            outcome = decide(next(iter(lost.values())))
            stale = write(path for path in files if path not in lost)
            for path in stale:
                with contextlib.suppress(OSError):
                    path.unlink()
            lost |= stale
            outcome = replace(outcome, lost=frozenset(lost))
    return outcome


def _is_special(path: Path) -> bool:
    """Whether a path is a device, a pipe or a socket, which cannot be written again."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _write(path: Path, writer: Writer, run: RunView, reports: Reports) -> str | None:
    """Write one report; returns the error, if any."""
    try:
        write_whole(path, partial(writer, run), is_appended=path in reports.appended)
    except (OSError, plugin.ReporterFailed) as error:
        return why(error, path)
    return None


def _render(name: ReportFormat, run: RunView, file: IO[bytes]) -> None:
    file.writelines(renderer(name)(run))


def _counted(
    read: Callable[[], Iterable[ResultRow]], outcomes: Iterable[CaseOutcome]
) -> Iterator[ResultRow]:
    """Yield the rows that count for the verdict: those of known cases, the first of each trial."""
    ran = {case.key: case.ran for case in outcomes}
    seen: set[tuple[CaseKey, int]] = set()
    for row in read():
        key = row.case_key
        trials = ran.get(key, 0)
        if trials == 1:
            # Further rows of the case repeat its trial.
            ran[key] = 0
            yield row
        elif trials > 1 and (key, row.trial) not in seen:
            seen.add((key, row.trial))
            yield row


def why(error: Exception, path: Path) -> str:
    """Return a file error as a sentence."""
    if isinstance(error, OSError):
        return f"{path}: {error.strerror}"
    return str(error)


def _write_report(run: RunView, file: IO[bytes]) -> None:
    file.write((json.dumps(run.report.model_dump(by_alias=True), indent=2) + "\n").encode())
