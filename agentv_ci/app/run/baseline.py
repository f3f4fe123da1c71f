"""Results or a baseline → a side of a comparison."""

from __future__ import annotations

import json
from datetime import datetime
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.cases.quarantine import in_quarantine
from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.analysis.comparison.answers import Rows
from agentv_ci.analysis.comparison.baseline import is_old, outcome_of
from agentv_ci.analysis.comparison.comparison import BaselineComparison, Side
from agentv_ci.app.run.files import read_run_report
from agentv_ci.base.left_files import read_named
from agentv_ci.base.model_errors import sentence
from agentv_ci.base.text import counted, shortened
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.comparison import BASELINE_SCHEMA, BaselineDocument
from agentv_ci.contracts.gate import WhenUndecided
from agentv_ci.contracts.report import RunReport
from agentv_ci.errors import NothingToRun, UsageError
from agentv_ci.jsonschema.schemas import schema_id
from agentv_ci.results.files import holds_rows, scan_rows

WRITE_BASELINE = "write one with `agentv-ci baseline accept`"


def baseline_comparison(
    path: Path,
    *,
    head: str,
    rows: Rows,
    now: datetime,
    is_part: bool = False,
    allows_changes: bool = False,
    when_undecided: WhenUndecided | None = None,
) -> BaselineComparison:
    """Return the comparison for a run to add to; `rows` reads those of the run, once it is over.

    Raises UsageError for a file that cannot be read.
    """
    try:
        base = side_of(path, path.name)
        return BaselineComparison(
            base,
            head,
            now,
            rows,
            is_part=is_part,
            allows_changes=allows_changes,
            when_undecided=when_undecided,
        )
    except NothingToRun as error:
        raise UsageError(error.message) from error


def _incomplete(report: RunReport) -> str | None:
    """Return why a run is incomplete."""
    if report.shard is not None:
        shard = f"shard {report.shard.index} of {report.shard.total}"
        return f"is {shard}; merge the shards with `report --out`"
    if report.stopped is not None:
        return f"is from a run that was stopped ({report.stopped}); finish it with --resume"
    if report.incomplete or report.write_error is not None:
        return "is missing rows of its run"
    return None


def side_of(path: Path, name: str) -> Side:
    """Return the run in results or a baseline; raises UsageError or NothingToRun."""
    if not holds_rows(path):
        document = read_baseline(path)
        cases = tuple(map(outcome_of, document.cases))
        return Side(name, cases, document.measured, has_no_figures=is_old(document))
    outcomes, measured, _ = read_outcomes(path, name)
    return Side(name, outcomes, measured, rows=partial(scan_rows, path))


def read_outcomes(
    results: Path, name: str
) -> tuple[tuple[CaseOutcome, ...], str, RunReport | None]:
    """Return the outcomes of whole results, the time of the newest row, and their run report.

    Raises UsageError for results that are not whole, and NothingToRun for empty ones.
    """
    report = read_run_report(results)
    if report is not None and (reason := _incomplete(report)):
        raise UsageError(f"cannot compare an incomplete run: '{name}' {reason}")
    targets = report.targets if report is not None else ()
    quarantine = report.quarantine if report is not None else ()
    tally = Tally((target.name for target in targets), compares=True)
    measured = ""
    seen: set[tuple[CaseKey, int]] = set()
    for row in scan_rows(results):
        key = row.case_key, row.trial
        if key in seen:
            raise UsageError(
                f"'{results}' contains trial {row.trial} of case '{row.eval_id}' twice"
            )
        if row.dry_run:
            raise UsageError(f"cannot compare a dry run: '{results}' contains answers of the mock")
        seen.add(key)
        tally.add(row)
        measured = max(measured, row.timestamp)
    if not tally.rows:
        raise NothingToRun(f"'{results}' is empty")
    if report is not None and report.counts.rows != tally.rows:
        expected = report.counts.rows
        raise UsageError(
            f"'{name}' has {counted(tally.rows, 'row')}; its run report expects {expected}"
        )
    return in_quarantine(tally.outcomes(), quarantine), measured, report


def read_baseline(path: Path) -> BaselineDocument:
    """Return a baseline; raises UsageError."""
    try:
        data = json.loads(read_named(path))
    except OSError as error:
        hint = WRITE_BASELINE if isinstance(error, FileNotFoundError) else None
        raise UsageError(f"cannot read '{path}': {error.strerror}", hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' is not valid JSON: {error}") from error
    declared = data.get("$schema") if isinstance(data, dict) else None
    if declared not in (BASELINE_SCHEMA, schema_id("baseline-v1")):
        which = ""
        if declared is not None:
            which = f": $schema is {shortened(str(declared), 80)}"
        hint = f"{WRITE_BASELINE}, or name results (.jsonl, .yaml)"
        raise UsageError(f"'{path}' is not a baseline that this version reads{which}", hint=hint)
    try:
        document = BaselineDocument.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"'{path}' is not a valid baseline: {sentence(error)}") from error
    seen: set[CaseKey] = set()
    for case in document.cases:
        key = case.key
        trials = (*case.passed, *case.missed)
        if key in seen or not trials or len({*trials}) < len(trials):
            what = "appears twice" if key in seen else "has no trials or a repeated one"
            raise UsageError(f"'{path}' is not a valid baseline: case '{case.id}' {what}")
        seen.add(key)
    return document
