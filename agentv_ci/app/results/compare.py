"""Results and baselines → two sides → their comparison."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from agentv_ci.analysis.cases.quarantine import gating
from agentv_ci.analysis.comparison.answers import with_answers
from agentv_ci.analysis.comparison.baseline import baseline_of, baseline_text
from agentv_ci.analysis.comparison.comparison import compare_sides, compare_targets
from agentv_ci.analysis.comparison.metric_changes import limits_of, when_undecided
from agentv_ci.analysis.comparison.statement import Terms
from agentv_ci.app.run.baseline import read_baseline, read_outcomes, side_of
from agentv_ci.app.run.files import read_run_report, report_path, require_writable
from agentv_ci.base.atomic import write_whole
from agentv_ci.base.text import counted, did_you_mean, listed
from agentv_ci.contracts.comparison import BaselineDocument, Comparison
from agentv_ci.contracts.results import ResultRow
from agentv_ci.errors import NothingToRun, UsageError
from agentv_ci.results.files import holds_rows, scan_rows


def compare_files(
    base: Path, head: Path, terms: Terms, *, names: tuple[str, str], now: datetime
) -> Comparison:
    """Compare two files, each of them results or a baseline; `names` are shown in messages.

    The terms replace the settings of the newer side's gate, limits metric by metric.

    Raises UsageError for files that cannot be read or compared, NothingToRun when no case is on
    both sides.
    """
    older, newer = side_of(base, names[0]), side_of(head, names[1])
    report = read_run_report(head) if holds_rows(head) else None
    settings = report.gate.settings if report is not None else ()
    given = {limit.metric for limit in terms.limits}
    of_gate = (limit for limit in limits_of(settings) if limit.metric not in given)
    limits = (*terms.limits, *of_gate)
    terms = replace(
        terms, limits=limits, when_undecided=terms.when_undecided or when_undecided(settings)
    )
    comparison = compare_sides(older, newer, terms, now=now)
    if not comparison.shares_cases:
        raise NothingToRun(f"no case is in both '{names[0]}' and '{names[1]}'")
    return with_answers(comparison, older.rows, newer.rows)


def compare_by_target(
    results: Path, base: str | None, terms: Terms, *, name: str, now: datetime
) -> tuple[Comparison, ...]:
    """Compare the targets of results with one of them, by default the first one.

    `name` is shown in messages.

    Raises UsageError for results that cannot be read or compared, NothingToRun when no case has
    several targets.
    """
    if not holds_rows(results):
        raise UsageError(f"'{name}' is not a results file: expected .jsonl or .yaml")
    outcomes, _, report = read_outcomes(results, name)
    known = report.targets if report is not None else ()
    names = [*(target.name for target in known), *(outcome.target for outcome in outcomes)]
    targets = list(dict.fromkeys(names))
    if len(targets) < 2:
        hint = "ask several targets in one run: eval --target A --target B"
        raise UsageError(f"'{name}' has answers of only one target, '{targets[0]}'", hint=hint)
    if base is not None and base not in targets:
        meant = did_you_mean(base, targets)
        raise UsageError(f"no answers of target '{base}' in '{name}'{meant}: {listed(targets)}")
    first = base if base is not None else targets[0]
    comparisons: list[Comparison] = []
    for target in targets:
        if target == first:
            continue
        comparison = compare_targets(outcomes, first, target, terms, now=now)
        if comparison.shares_cases:
            rows = partial(_rows_of, results, first), partial(_rows_of, results, target)
            comparisons.append(with_answers(comparison, *rows))
    if not comparisons:
        raise NothingToRun(f"no case of '{name}' is answered by '{first}' and another target")
    return tuple(comparisons)


def _rows_of(results: Path, target: str) -> Iterator[ResultRow]:
    return (row for row in scan_rows(results) if row.target == target)


def accept_baseline(
    results: Path, out: Path, *, partial: bool = False
) -> tuple[BaselineDocument, list[str]]:
    """Write the baseline of results; return it with warnings about it.

    With `partial`, the first baseline may be of only some cases. Raises UsageError for results that cannot be a baseline, NothingToRun when no case was graded,
    OSError.
    """
    if not holds_rows(results):
        raise UsageError(f"'{results}' is not a results file: expected .jsonl or .yaml")
    require_writable([out], (results, report_path(results)))
    outcomes, measured, report = read_outcomes(results, results.name)
    plan_digest = report.plan_digest if report is not None else None
    counting = gating(outcomes)
    document = baseline_of(counting, plan_digest=plan_digest, measured=measured)
    if document is None:
        raise NothingToRun(f"no case of '{results}' was graded")
    if report is not None and report.filtered:
        _refuse_losses(results, document, out, partial=partial)
    write_whole(out, lambda file: file.write(baseline_text(document).encode("utf-8")))
    warnings = []
    if report is None:
        warnings.append(f"the run report of '{results.name}' is missing: the run may be incomplete")
    if excused := len(outcomes) - len(counting):
        warnings.append(f"{counted(excused, 'case')} in quarantine left out")
    if left_out := len(counting) - len(document.cases):
        warnings.append(f"{counted(left_out, 'case')} without a verdict skipped")
    if all(len(case.passed) + len(case.missed) == 1 for case in document.cases):
        warnings.append(
            "one trial per case: noise cannot be distinguished from change; use --repeat"
        )
    return document, warnings


def _refuse_losses(results: Path, document: BaselineDocument, out: Path, *, partial: bool) -> None:
    """Raise UsageError if a baseline has cases that a part of the cases would drop.

    The first one would lack cases, unless it is wanted so.
    """
    if not out.exists():
        if not partial:
            raise UsageError(
                f"only some cases ran for '{results}'; a baseline would lack the others",
                hint="run all cases, or accept these with --partial",
            )
        return
    kept = {case.key for case in document.cases}
    lost = sum(case.key not in kept for case in read_baseline(out).cases)
    if lost:
        raise UsageError(
            f"only some cases ran for '{results}'; '{out}' would lose {counted(lost, 'case')}",
            hint="run all cases, or write another file with --out and --partial",
        )
