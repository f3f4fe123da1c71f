"""Results and baselines → two sides → their comparison."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace
from pydantic import ValidationError

from agentv_ci.analysis.baseline import baseline_of, baseline_text, is_old, outcome_of
from agentv_ci.analysis.comparison import BaselineComparison, Side, compare_sides, compare_targets
from agentv_ci.analysis.metric_changes import limits_of, when_undecided
from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.analysis.quarantine import gating, in_quarantine
from agentv_ci.analysis.statement import Terms
from agentv_ci.analysis.tally import Tally
from agentv_ci.app.report_files import read_run_report, report_path, require_writable
from agentv_ci.atomic import write_whole
from agentv_ci.contracts.case_key import CaseKey
from agentv_ci.contracts.comparison import BASELINE_SCHEMA, BaselineDocument, Comparison
from agentv_ci.contracts.increases import WhenUndecided
from agentv_ci.contracts.report import RunReport
from agentv_ci.errors import NothingToRun, UsageError
from agentv_ci.jsonschema.schemas import schema_id
from agentv_ci.model_errors import sentence
from agentv_ci.results.files import holds_rows, scan_rows
from agentv_ci.text import counted, did_you_mean, listed, shortened

WRITE_BASELINE = "write one with `agentv-ci baseline accept`"


def compare_files(base: Path, head: Path, terms: Terms, *, names: tuple[str, str], now: datetime) -> Comparison:
    """Compare two files, each of them results or a baseline; `names` are shown in messages.

    The terms replace the settings of the newer side's gate, limits metric by metric.

    Raises UsageError for files that cannot be read or compared, NothingToRun when no case is on both sides.
    """
    older, newer = side_of(base, names[0]), side_of(head, names[1])
    report = read_run_report(head) if holds_rows(head) else None
    settings = report.gate.settings if report is not None else ()
    given = {limit.metric for limit in terms.limits}
    limits = (*terms.limits, *(limit for limit in limits_of(settings) if limit.metric not in given))
    terms = replace(terms, limits=limits, when_undecided=terms.when_undecided or when_undecided(settings))
    comparison = compare_sides(older, newer, terms, now=now)
    if not comparison.shares_cases:
        raise NothingToRun(f"no case is in both '{names[0]}' and '{names[1]}'")
    return comparison


def compare_by_target(
    results: Path, base: str | None, terms: Terms, *, name: str, now: datetime
) -> tuple[Comparison, ...]:
    """Compare the targets of results with one of them, by default the first one; `name` is shown in messages.

    Raises UsageError for results that cannot be read or compared, NothingToRun when no case has several targets.
    """
    if not holds_rows(results):
        raise UsageError(f"'{name}' is not a results file: expected .jsonl or .yaml")
    outcomes, _, report = _read(results, name)
    known = report.targets if report is not None else ()
    targets = [*dict.fromkeys((*(each.name for each in known), *(each.target for each in outcomes)))]
    if len(targets) < 2:
        hint = "ask several targets in one run: eval --target A --target B"
        raise UsageError(f"'{name}' has answers of only one target, '{targets[0]}'", hint=hint)
    if base is not None and base not in targets:
        raise UsageError(f"no answers of target '{base}' in '{name}'{did_you_mean(base, targets)}: {listed(targets)}")
    first = base if base is not None else targets[0]
    others = (each for each in targets if each != first)
    found = (compare_targets(outcomes, first, each, terms, now=now) for each in others)
    comparisons = tuple(each for each in found if each.shares_cases)
    if not comparisons:
        raise NothingToRun(f"no case of '{name}' is answered by '{first}' and another target")
    return comparisons


def baseline_comparison(
    path: Path,
    *,
    head: str,
    now: datetime,
    is_part: bool = False,
    allows_changes: bool = False,
    when_undecided: WhenUndecided | None = None,
) -> BaselineComparison:
    """Return the comparison for a run to add to; raises UsageError for a file that cannot be read."""
    try:
        base = side_of(path, path.name)
        return BaselineComparison(
            base, head, now, is_part=is_part, allows_changes=allows_changes, when_undecided=when_undecided
        )
    except NothingToRun as error:
        raise UsageError(error.message) from error


def accept_baseline(results: Path, out: Path) -> tuple[BaselineDocument, list[str]]:
    """Write the baseline of results; return it with warnings about it.

    Raises UsageError for results that cannot be a baseline, NothingToRun when no case was graded, OSError.
    """
    if not holds_rows(results):
        raise UsageError(f"'{results}' is not a results file: expected .jsonl or .yaml")
    require_writable([out], (results, report_path(results)))
    outcomes, measured, report = _read(results, results.name)
    plan_digest = report.plan_digest if report is not None else None
    counting = gating(outcomes)
    document = baseline_of(counting, plan_digest=plan_digest, measured=measured)
    if document is None:
        raise NothingToRun(f"no case of '{results}' was graded")
    if report is not None and report.filtered:
        _refuse_losses(results, document, out)
    write_whole(out, lambda file: file.write(baseline_text(document).encode("utf-8")))
    warnings = []
    if report is None:
        warnings.append(f"the run report of '{results.name}' is missing: the run may be incomplete")
    if excused := len(outcomes) - len(counting):
        warnings.append(f"{counted(excused, 'case')} in quarantine left out")
    if left_out := len(counting) - len(document.cases):
        warnings.append(f"{counted(left_out, 'case')} without a verdict skipped")
    if all(len(case.passed) + len(case.missed) == 1 for case in document.cases):
        warnings.append("one trial per case: noise cannot be distinguished from change; use --repeat")
    return document, warnings


def _refuse_losses(results: Path, document: BaselineDocument, out: Path) -> None:
    """Raise UsageError if a baseline has cases that a part of the cases would drop."""
    if not out.exists():
        return
    kept = {case.key for case in document.cases}
    lost = sum(case.key not in kept for case in _baseline(out).cases)
    if lost:
        raise UsageError(
            f"only some cases ran for '{results}'; '{out}' would lose {counted(lost, 'case')}",
            hint="run all cases, or write another file with --out",
        )


def _incomplete(report: RunReport) -> str | None:
    """Return why a run is incomplete."""
    if report.shard is not None:
        return f"is shard {report.shard.index} of {report.shard.total}; merge the shards with `report --out`"
    if report.stopped is not None:
        return f"is from a run that was stopped ({report.stopped}); finish it with --resume"
    if report.incomplete or report.write_error is not None:
        return "is missing rows of its run"
    return None


def side_of(path: Path, name: str) -> Side:
    """Return the run in results or a baseline; raises UsageError or NothingToRun."""
    if not holds_rows(path):
        document = _baseline(path)
        cases = tuple(map(outcome_of, document.cases))
        return Side(name, cases, document.measured, has_no_figures=is_old(document))
    outcomes, measured, _ = _read(path, name)
    return Side(name, outcomes, measured)


def _read(results: Path, name: str) -> tuple[tuple[CaseOutcome, ...], str, RunReport | None]:
    """Return the outcomes of whole results, the time of the newest row, and their run report.

    Raises UsageError for results that are not whole, and NothingToRun for empty ones.
    """
    report = read_run_report(results)
    if report is not None and (reason := _incomplete(report)):
        raise UsageError(f"cannot compare an incomplete run: '{name}' {reason}")
    tally, measured = Tally((each.name for each in (report.targets if report is not None else ())), compares=True), ""
    seen: set[tuple[CaseKey, int]] = set()
    for row in scan_rows(results):
        key = row.case_key, row.trial
        if key in seen:
            raise UsageError(f"'{results}' contains trial {row.trial} of case '{row.eval_id}' twice")
        if row.dry_run:
            raise UsageError(f"cannot compare a dry run: '{results}' contains answers of the mock")
        seen.add(key)
        tally.add(row)
        measured = max(measured, row.timestamp)
    if not tally.rows:
        raise NothingToRun(f"'{results}' is empty")
    if report is not None and report.counts.rows != tally.rows:
        expected = report.counts.rows
        raise UsageError(f"'{name}' has {counted(tally.rows, 'row')}; its run report expects {expected}")
    return in_quarantine(tally.outcomes(), report.quarantine if report is not None else ()), measured, report


def _baseline(path: Path) -> BaselineDocument:
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        hint = WRITE_BASELINE if isinstance(error, FileNotFoundError) else None
        raise UsageError(f"cannot read '{path}': {error.strerror}", hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' is not valid JSON: {error}") from error
    declared = data.get("$schema") if isinstance(data, dict) else None
    if declared not in (BASELINE_SCHEMA, schema_id("baseline-v1")):
        which = f": $schema is {shortened(str(declared), 80)}" if declared is not None else ""
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
