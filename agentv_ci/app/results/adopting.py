"""Results of other tools → a results file, with its run report beside it."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import get_args

from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.analysis.run_report import run_report_of
from agentv_ci.app.results.report import Against, report_results
from agentv_ci.app.run.files import Reports, RunFiles, RunOutcome, report_path
from agentv_ci.base.text import did_you_mean, listed
from agentv_ci.contracts.other_tools import AdoptedFile, AdoptedResult, AdoptKind, HowToRead
from agentv_ci.contracts.report import Ending, GateSettings, RunReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.source import normal, relative
from agentv_ci.errors import NothingToRun, UsageError
from agentv_ci.load.discover import find_root
from agentv_ci.other_tools.adopt.adopted_rows import adopted_rows
from agentv_ci.other_tools.adopt.lines import FIELDS
from agentv_ci.other_tools.adopt.reading import results_in
from agentv_ci.results.files import form, form_named

KINDS: tuple[AdoptKind, ...] = get_args(AdoptKind)
COLUMNS = FIELDS


@dataclass(frozen=True, slots=True)
class AdoptWish:
    """What to adopt, and where to."""

    paths: Sequence[str]
    kind: AdoptKind
    out: Path
    how: HowToRead = field(default_factory=HowToRead)
    min_pass_rate: float | None = None


def adopted(
    wish: AdoptWish, reports: Reports, *, baseline: Path | None, cwd: Path, now: datetime
) -> tuple[RunOutcome, RunFiles]:
    """Write the results of another tool as rows with a run report, and the reports of this run.

    Raises UsageError for a file that cannot be read, and NothingToRun if there is no result.
    """
    out = normal(cwd / wish.out)
    paths = [normal(cwd / path) for path in wish.paths]
    for name, path in zip(wish.paths, paths, strict=True):
        if paths.count(path) > 1:
            raise UsageError(f"{name} is named twice")
    files = RunFiles(out, form_named(out), reports)
    files.require_writable([*paths, *filter(None, [baseline])])
    found: list[tuple[str, AdoptedResult]] = []
    lost: list[str] = []
    scores, columns = set[str](), set[str]()
    for name, path in zip(_names(paths, cwd), paths, strict=True):
        read = _read(path, wish)
        scores |= read.scores
        columns |= read.columns
        found += ((name, result) for result in read.results)
        lost += (f"{name}: {sentence}" for sentence in read.lost)
        if not read.lost and not read.results:
            lost.append(f"{name}: it has no results")
    if not found:
        raise NothingToRun(
            f"no result of {wish.kind} in {', '.join(wish.paths)}", hint="; ".join(lost)
        )
    _require_names(wish.how, scores, columns)
    rows = list(adopted_rows(found, tool=wish.kind, now=now))
    with tempfile.TemporaryDirectory() as folder:
        unreported = Path(folder, out.name)
        encode = form(form_named(out)).encode
        unreported.write_text("".join(map(encode, rows)), encoding="utf-8", newline="\n")
        report = _report(rows, lost, 1.0 if wish.min_pass_rate is None else wish.min_pass_rate)
        report_path(unreported).write_text(
            json.dumps(report.model_dump(by_alias=True)), encoding="utf-8"
        )
        against = Against(baseline, now) if baseline is not None else None
        outcome = report_results(
            [str(unreported)], files, reports, cwd=cwd, expected_shards=None, against=against
        )
    return outcome, files


def results_of(wish: AdoptWish, path: Path) -> tuple[AdoptedResult, ...]:
    """Return the results in a file of another tool; raises UsageError if it has none."""
    return _read(path, wish).results


def _require_names(how: HowToRead, scores: AbstractSet[str], columns: AbstractSet[str]) -> None:
    """Raise UsageError for a name that no result has.

    Where no result has scores, names cannot be wrong.
    """
    if not scores:
        return
    for flag, names, known in (
        ("--scale", how.scales, scores),
        ("--ignore", how.ignored, scores | columns),
    ):
        if unknown := sorted({*names} - known - {""}):
            hint = f"scores: {listed(sorted(scores))}"
            raise UsageError(
                f"{flag} {unknown[0]}: no result has it{did_you_mean(unknown[0], known)}", hint=hint
            )


def _names(paths: Sequence[Path], cwd: Path) -> list[str]:
    """Return the path of each file from its repository.

    From here, if files of two repositories have the same.
    """
    names = [relative(path, find_root(path, cwd)) for path in paths]
    return [
        name if names.count(name) == 1 else relative(path, cwd)
        for name, path in zip(names, paths, strict=True)
    ]


def _report(rows: Sequence[ResultRow], lost: Sequence[str], min_pass_rate: float) -> RunReport:
    """Return the run report of results, with the gate of every suite.

    The gate does not pass if something is lost.
    """
    tally = Tally(row.target for row in rows)
    for row in rows:
        tally.add(row)
    outcomes = tally.outcomes()
    cases = Counter(outcome.case.suite for outcome in outcomes)
    settings = [
        GateSettings(suite=suite, cases=n, min_pass_rate=min_pass_rate)
        for suite, n in sorted(cases.items())
    ]
    ending = Ending(incomplete=tuple(lost))
    return run_report_of(
        tally, outcomes, settings, ending, plan_digest=None, scenarios=(), comparison=None
    )


def _read(path: Path, wish: AdoptWish) -> AdoptedFile:
    try:
        return results_in(path, wish.kind, wish.how)
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"'{path}' has no results of {wish.kind}: {error}") from error
