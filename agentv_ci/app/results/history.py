"""Results → the ledger → the health of the eval set."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from glob import glob, has_magic
from pathlib import Path

from msgspec import Struct

from agentv_ci.analysis.cases.recording import Recording
from agentv_ci.analysis.health.correlation import trial_correlation
from agentv_ci.analysis.health.histories import histories
from agentv_ci.analysis.health.report import health_of
from agentv_ci.app.prove.proof_file import read_proof
from agentv_ci.app.run.files import read_run_report
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.command_output import HealthReport
from agentv_ci.contracts.exchange import Environment
from agentv_ci.contracts.ledger import CaseLine, Damage
from agentv_ci.errors import CannotGoOn, NothingToRun, UsageError
from agentv_ci.ledger.lines import file_of, why_refused
from agentv_ci.ledger.place import MAX_AHEAD, LedgerPlace, add_to_ledger, read_ledger
from agentv_ci.results.files import RESULTS_SUFFIXES, scan_rows

DAYS = 180
"""Of a ledger, the newest are looked at."""
MERGE = "merge the shards with `agentv-ci report --out`"


def results_named(patterns: Sequence[str], cwd: Path) -> list[Path]:
    """Return the results files that paths and globs name, in order, each once.

    Raises UsageError for a path or glob that names none.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        names = [str(cwd / pattern)]
        is_glob = has_magic(pattern)
        if is_glob:
            names = sorted(glob(names[0], recursive=True))  # noqa: PTH207  # of any path
        files = list(filter(Path.is_file, map(Path, names)))
        if not files:
            raise UsageError(f"no results file '{pattern}'")
        named = [path.resolve() for path in files if not is_glob or path.suffix in RESULTS_SUFFIXES]
        if not named:
            raise UsageError(f"'{pattern}' is not a results file", hint="expected .jsonl or .yaml")
        found |= dict.fromkeys(named)
    return [*found]


class Added(Struct, frozen=True):
    """What became of results that are added to a ledger."""

    new: tuple[str, ...]
    """Paths of the runs in the ledger."""
    known: int
    """Runs that the ledger had already."""
    refused: tuple[str, ...] = ()
    """Why results were left out."""


async def health(
    place: LedgerPlace, proof: Path | None, environment: Environment, *, since: date
) -> HealthReport:
    """Return what a ledger says of its cases since a day.

    Raises LedgerUnavailable, NothingToRun if there is no run since then, and UsageError for a file
    that is not a proof.
    """
    proven = read_proof(proof) if proof is not None else None
    ledger = await read_ledger(place, environment, since)
    if not ledger.runs and not ledger.damaged:
        raise NothingToRun(
            f"no run since {since} in {ledger.source}", hint="add one with `agentv-ci history add`"
        )
    return health_of(ledger, proven)


async def correlation_in(
    place: LedgerPlace, environment: Environment, *, since: date
) -> float | None:
    """Return the correlation of the trials of one run in a ledger; None if too few runs show it.

    Raises LedgerUnavailable.
    """
    ledger = await read_ledger(place, environment, since)
    return trial_correlation(histories(ledger.runs))


class _Run(Struct, frozen=True):
    path: str
    content: bytes


async def add_results(
    results: Sequence[Path],
    place: LedgerPlace,
    environment: Environment,
    *,
    run_url: str | None = None,
    partial: bool = False,
) -> Added:
    """Add each of these results files to a ledger as a run.

    With `partial`, a run of only some cases may be one, too.

    Raises UsageError for results that cannot be a run, NothingToRun for empty ones,
    LedgerUnavailable.
    """
    runs = [_run_of(path, run_url, environment, partial=partial) for path in results]
    return await _add(runs, place, environment)


async def import_results(
    results: Sequence[Path], place: LedgerPlace, environment: Environment, *, partial: bool = False
) -> Added:
    """Add older results files to a ledger.

    Those that cannot be a run are left out, with the reason. With `partial`, a run of only some
    cases may be one, too.

    Raises NothingToRun if none can, LedgerUnavailable.
    """
    runs, refused = [], []
    for path in results:
        try:
            runs.append(_run_of(path, None, environment, partial=partial))
        except CannotGoOn as error:
            refused.append("; ".join(filter(None, [error.message, error.hint])))
    if not runs:
        raise NothingToRun(
            "none of these files can be added to the ledger", hint="\n".join(refused[:5])
        )
    return await _add(runs, place, environment, refused)


async def _add(
    runs: Sequence[_Run], place: LedgerPlace, environment: Environment, refused: Sequence[str] = ()
) -> Added:
    files = {run.path: run.content for run in runs}
    new = await add_to_ledger(place, files, environment)
    return Added(tuple(new), len(runs) - len(new), tuple(refused))


def _run_of(path: Path, run_url: str | None, environment: Environment, *, partial: bool) -> _Run:
    """Return results as the file of a run.

    Raises UsageError, and NothingToRun if no case ran to its end.
    """
    report = read_run_report(path)
    if report is not None and report.shard is not None:
        raise UsageError(
            f"'{path}' is shard {report.shard.index} of {report.shard.total}", hint=MERGE
        )
    if report is not None and report.part_of is not None and not partial:
        raise UsageError(
            f"'{path}' is not a run of all cases: {report.part_of}", hint="add it with --partial"
        )
    recording, seen = Recording(), set[tuple[CaseKey, int]]()
    for row in scan_rows(path, allow_torn=report is None):
        if row.dry_run:
            raise UsageError(f"'{path}' is of a dry run: its answers are those of the mock")
        trial = row.case_key, row.trial
        if trial in seen:
            raise UsageError(f"'{path}' contains trial {row.trial} of case '{row.eval_id}' twice")
        seen.add(trial)
        recording.add(row)
    cases = recording.lines()
    if not cases:
        raise NothingToRun(f"no case of '{path}' ran to its end")
    commit = None
    if report is not None and report.origin is not None:
        commit = report.origin.commit
    time = _time(path, recording.ended, environment)
    run = _Run(*file_of(cases, time=time, commit=commit, run_url=run_url))
    if damaged := why_refused(run.path, run.content):
        raise UsageError(
            f"'{path}' cannot be a run of a ledger: {_what(damaged, cases)} {damaged.reason}"
        )
    return run


def _what(damaged: Damage, cases: Sequence[CaseLine]) -> str:
    """Return what the line is about whose number is in the place of a damage.

    The first describes the run.
    """
    number = damaged.place.rpartition(":")[2]
    if not number.isdecimal() or number == "1":
        return "it"
    return f"case '{cases[int(number) - 2].id}'"


def _time(path: Path, timestamp: str, environment: Environment) -> datetime:
    """Return the time of a row; raises UsageError."""
    try:
        time = datetime.fromisoformat(timestamp)
        if time.tzinfo is None:
            raise UsageError(f"'{path}': '{timestamp}' has no time zone")
        time = time.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"'{path}': '{timestamp}' is not a time in ISO 8601") from error
    if time > environment.now() + MAX_AHEAD:
        raise UsageError(f"'{path}': '{timestamp}' is in the future")
    return time
