"""A run's verdict → its reports, in files that all say the same."""

from __future__ import annotations

import contextlib
import json
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentv_ci.app.workspace import refuse_to_overwrite
from agentv_ci.atomic import replacing
from agentv_ci.errors import UsageError
from agentv_ci.report.links import NO_LINKS, Links

if TYPE_CHECKING:
    from agentv_ci.analysis.outcomes import CaseOutcome, OutcomeKey
    from agentv_ci.contracts.report import RunReport
    from agentv_ci.contracts.results import ResultRow
    from agentv_ci.report.renderers import ReportFormat

Pieces = Callable[[], Iterable[bytes]]
"""Makes the content of a file anew."""


@dataclass(frozen=True, slots=True)
class Reports:
    """Which reports are wanted of a run, and where."""

    files: Mapping[ReportFormat, Path] = field(default_factory=dict)
    links: Links = NO_LINKS
    appended: frozenset[Path] = frozenset()
    """Files that belong to more than this run, such as the summary of a job."""

    @property
    def named(self) -> dict[str, Path]:
        """What lies where."""
        return {str(name): path for name, path in self.files.items()}


NO_REPORTS = Reports()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    report: RunReport
    cases: tuple[CaseOutcome, ...]
    lost: frozenset[Path] = frozenset()
    """Reports that could not be written; the verdict says why."""


def require_writable(outputs: Sequence[Path], inputs: Iterable[Path]) -> None:
    """Raise UsageError where something is to be written and something else, or a folder, lies."""
    refuse_to_overwrite(outputs, inputs)
    for path in outputs:
        if path.is_dir():
            raise UsageError(f"results and reports go into files, and '{path}' is none")


def publish(
    outcome: Outcome,
    judge: Callable[[str], Outcome],
    rows: Callable[[], Iterable[ResultRow]],
    report: Path | None,
    reports: Reports,
) -> Outcome:
    """Write the reports of a run, and return what it came to then; raises what reading the rows raises.

    What is lost is part of the verdict: `judge` gives another one, and all files are written once more. One that then
    cannot be written does not stay either, since it would say something else. What cannot be written twice, such as a
    pipe, comes when nothing else can be lost any more.
    """
    lost: dict[Path, str] = {}
    groups = _groups(report, reports)
    for group in groups:
        found = _write_all(group, outcome, rows, reports)
        lost |= found
        if found:
            outcome = judge(next(iter(lost.values())))
            again = {path: name for path, name in groups[0].items() if path not in lost}
            stale = _write_all(again, outcome, rows, reports)
            for path in stale:
                with contextlib.suppress(OSError):
                    path.unlink()
            lost |= stale
            outcome = replace(outcome, lost=frozenset(lost))
    return outcome


_Group = Mapping[Path, "ReportFormat | None"]
"""Where what is written; None is the run report."""


def _groups(report: Path | None, reports: Reports) -> tuple[_Group, _Group, _Group]:
    """Return what is written first, second and last: files, devices, and what is written to once."""
    wanted: dict[Path, ReportFormat | None] = {report: None} if report is not None else {}
    wanted |= {path: name for name, path in reports.files.items()}
    kinds = {path: _kind(path, reports.appended) for path in wanted}
    files, devices, once = ({path: wanted[path] for path in wanted if kinds[path] == kind} for kind in range(3))
    return files, devices, once


def _kind(path: Path, appended: frozenset[Path]) -> int:
    if path in appended:
        return 2
    try:
        mode = path.stat().st_mode
    except OSError:
        return 0
    return 0 if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else 1 if stat.S_ISCHR(mode) else 2


def _write_all(
    group: _Group, outcome: Outcome, rows: Callable[[], Iterable[ResultRow]], reports: Reports
) -> dict[Path, str]:
    """Write a group; returns which are not there, and why."""
    from agentv_ci.report.renderers import renderer
    from agentv_ci.report.view import RunView

    known = {each.key for each in outcome.cases}
    run = RunView(outcome.report, outcome.cases, lambda: _counted(rows(), known), reports.links)
    found: dict[Path, str] = {}
    for path, name in group.items():
        pieces: Pieces = partial(renderer(name).render, run) if name is not None else partial(_encoded, outcome.report)
        try:
            write_whole(path, pieces, is_appended=path in reports.appended)
        except OSError as error:
            found[path] = why(error, path)
    return found


def _counted(rows: Iterable[ResultRow], known: set[OutcomeKey]) -> Iterator[ResultRow]:
    """Yield the rows that the verdict is of: those of known cases, of each trial the first."""
    from agentv_ci.analysis.outcomes import key_of

    seen: set[tuple[OutcomeKey, int]] = set()
    for row in rows:
        trial = key_of(row), row.trial
        if trial[0] in known and trial not in seen:
            seen.add(trial)
            yield row


def write_whole(path: Path, pieces: Pieces, *, is_appended: bool = False) -> None:
    """Put a file in its place when all of it is written; what is no file is written to. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_appended or (path.exists() and not path.is_file()):
        with path.open("ab") as file:
            file.writelines(pieces())
        return
    with replacing(path) as file:
        file.writelines(pieces())


def why(error: Exception, path: Path) -> str:
    """Return why a file is not as it should be, for people."""
    return f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error)


def _encoded(run_report: RunReport) -> list[bytes]:
    return [(json.dumps(run_report.model_dump(by_alias=True), indent=2) + "\n").encode()]
