"""Results → one report: shards are merged, and whatever a run reports is reported again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentv_ci.app.concluding import RunFiles, report_of
from agentv_ci.app.report_files import Outcome, Reports, publish, require_writable
from agentv_ci.app.scenarios import validate_runs
from agentv_ci.app.workspace import refuse_to_overwrite
from agentv_ci.atomic import replacing
from agentv_ci.errors import NothingToRun, UsageError
from agentv_ci.results.files import form, read_rows
from agentv_ci.text import did_you_mean, listed

if TYPE_CHECKING:
    from agentv_ci.analysis.comparison import Yardstick
    from agentv_ci.analysis.merging import Part
    from agentv_ci.contracts.base import JsonObject
    from agentv_ci.contracts.report import GateSettings, ScenarioReport
    from agentv_ci.contracts.results import ResultRow


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
    yardstick: Yardstick | None = None
    baseline: Path | None = None
    """Where the yardstick was read."""


def report_results(merging: Merging) -> Outcome:
    """Report several result files as one run.

    Raises UsageError for what cannot be read, NothingToRun when there is nothing in them, OSError.
    """
    from agentv_ci.analysis.merging import merge

    _refuse_to_overwrite(merging)
    parts = [part_of(path, name) for path, name in zip(merging.results, merging.names, strict=True)]

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
        merged = merge(
            parts,
            located(),
            merging.expected_shards,
            validate=validate,
            yardstick=merging.yardstick,
            write_error=lost,
        )
        return Outcome(*merged)

    if all(part.report is None for part in parts) and next(rows(), None) is None:
        raise NothingToRun("these files have no rows")
    outcome = judge()
    written = [*(merging.out.written.values() if merging.out is not None else ()), *merging.reports.files.values()]
    documents = _documents(merging.results[0], {each.case.suite for each in outcome.cases})
    refuse_to_overwrite(written, documents)
    if merging.out is not None:
        _write_rows(merging.out, rows())
    report = merging.out.report if merging.out is not None else None
    return publish(outcome, judge, rows, report, merging.reports)


def _documents(results: Path, suites: Iterable[str]) -> Iterator[Path]:
    """Yield the eval files that rows name, and their targets, where they lie in the repository of the results."""
    from agentv_ci.load.discover import find_root, targets_in

    root = find_root(results, results.parent)
    folders: set[Path] = set()
    for suite in suites:
        path = root / suite
        yield path
        if path.parent not in folders:
            folders.add(path.parent)
            targets = targets_in(path.parent, root)
            yield from [targets] if targets is not None else []


def check_results(results: Sequence[Path], keys: Sequence[str], settings: JsonObject) -> tuple[ScenarioReport, ...]:
    """Return what these validators, with these settings, say of every suite in results.

    Raises UsageError for an unknown validator and for what cannot be read, NothingToRun when there are no rows.
    """
    from agentv_ci.contracts.report import GateSettings, ValidatorSettings
    from agentv_ci.validator_settings import SETTINGS, own_settings, unknown_settings, wrong_settings
    from agentv_ci.validators import list_validators

    _refuse_twice(results)
    known = list_validators()
    for key in keys:
        if key not in known:
            raise UsageError(f"unknown validator '{key}'{did_you_mean(key, known)}; validators are {listed(known)}")
    wrong = [sentence for key in keys for _, sentence in wrong_settings(key, own_settings(key, settings))]
    if all(key in SETTINGS for key in keys) and (others := unknown_settings(keys, settings)):
        has = listed(name for key in keys for name in SETTINGS[key].model_fields) or "no settings"
        wrong.append(f"no such setting: {listed(others)}; these validators have {has}")
    if wrong:
        raise UsageError("\n".join(wrong), hint="--context has the settings, as JSON" if not settings else None)
    located: list[tuple[ResultRow, str | None]] = []
    seeds: dict[str, set[int]] = {}
    for path in results:
        report = part_of(path, path.name).report
        located += [(row, report.plan_digest if report is not None else None) for row in read_rows(path)]
        for suite in report.gate.settings if report is not None else ():
            seeds.setdefault(suite.suite, set()).update(suite.seeds)
    if not located:
        raise NothingToRun("these files have no rows")
    uses = tuple(ValidatorSettings(key=key, context=own_settings(key, settings)) for key in dict.fromkeys(keys))
    suites = sorted({row.suite for row, _ in located})
    wanted = (
        GateSettings(suite=suite, cases=0, validators=uses, seeds=tuple(sorted(seeds.get(suite, ()))))
        for suite in suites
    )
    return validate_runs(wanted, located)


def _refuse_twice(results: Sequence[Path]) -> None:
    if len({path.resolve() for path in results}) < len(results):
        raise UsageError("a results file is named twice")


def _refuse_to_overwrite(merging: Merging) -> None:
    _refuse_twice(merging.results)
    sources = tuple(each for path in merging.results for each in (path, report_of(path)))
    if merging.baseline is not None:
        sources = (*sources, merging.baseline)
    if merging.out is not None:
        replace(merging.out, reports=merging.reports).require_writable(sources)
    else:
        require_writable(list(merging.reports.files.values()), sources)


def part_of(results: Path, name: str) -> Part:
    """Return a results file with the run report beside it; raises UsageError for a report that cannot be read."""
    from pydantic import ValidationError

    from agentv_ci.analysis.merging import Part
    from agentv_ci.contracts.report import RunReport
    from agentv_ci.jsonschema.schemas import schema_id
    from agentv_ci.model_errors import sentence

    path = report_of(results)
    if results.exists() and not results.is_file():
        raise UsageError(f"results are read more than once, and '{results}' is no file")
    try:
        data = json.loads(path.read_bytes())
        if isinstance(data, dict) and data.get("$schema") != schema_id("report-v1"):
            raise UsageError(
                f"'{path}' is not a run report that this version reads: its $schema is {data.get('$schema')}"
            )
        report = RunReport.model_validate(data)
    except FileNotFoundError:
        report = None
    except ValidationError as error:
        raise UsageError(f"'{path}' is not a run report that this version reads: {sentence(error)}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' is not a run report that this version reads: {error}") from error
    return Part(name, report)


def _write_rows(files: RunFiles, rows: Iterator[ResultRow]) -> None:
    encode = form(files.form).encode
    files.results.parent.mkdir(parents=True, exist_ok=True)
    with replacing(files.results) as file:
        file.writelines(encode(row).encode("utf-8", "replace") for row in rows)
