"""The summary at the end of a run, for 80 columns; colours are only named here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from agentv_ci.contracts.report import RunReport
from agentv_ci.outside import flowed, printable, shortened
from agentv_ci.report.outcomes import CaseOutcome, not_passed
from agentv_ci.report.sections import (
    MAX_SHOWN,
    Line,
    Style,
    comparison_lines,
    counts_text,
    figure_lines,
    flaky_lines,
    scenario_lines,
)
from agentv_ci.report.words import DRY_RUN

WIDTH = 80
MAX_SENTENCE = 300
MAX_ANSWER = 140

_STYLES: dict[str, Style] = {"pass": "good", "borderline": "warn", "fail": "bad", "error": "bad"}


def render(report: RunReport, outcomes: Sequence[CaseOutcome]) -> Iterator[Line]:
    """Yield the summary: errors, failures, figures, the gate."""
    if report.dry_run:
        yield Line(f"dry run: {DRY_RUN}", "warn")
    errors, failed = not_passed(outcomes, is_stopped=report.stopped is not None)
    yield from _cases("errors", errors)
    yield from _cases("failures, worst first", failed)
    yield from flaky_lines(report.repeated)
    yield Line(counts_text(report), "strong")
    yield from figure_lines(report)
    yield from scenario_lines(report.scenario_reports)
    if report.comparison is not None:
        yield from comparison_lines(report.comparison)
    yield from _gate(report)


def _cases(title: str, outcomes: Sequence[CaseOutcome]) -> Iterator[Line]:
    if not outcomes:
        return
    yield Line(f"{title}:", "title")
    for outcome in outcomes[:MAX_SHOWN]:
        source = outcome.case.source
        score = "" if outcome.verdict == "error" else f" {outcome.score:.3f}"
        yield Line.of(
            (f"  {outcome.verdict}{score}  ", _STYLES[outcome.verdict]),
            (printable(outcome.case.id), "strong"),
            (f"  ({printable(source.path)}:{source.line})", "faint"),
        )
        yield from map(Line, _reasons(outcome))
        yield from (Line(each, "faint") for each in _answer(outcome))
    if len(outcomes) > MAX_SHOWN:
        yield Line(f"  … and {len(outcomes) - MAX_SHOWN} more")
    yield Line("")


def _reasons(outcome: CaseOutcome) -> Iterator[str]:
    """Yield why a case did not pass: what its only evaluator said, else what each of them did."""
    findings = outcome.findings
    if len(findings) < 2:
        text = flowed(outcome.summary)
        yield from [_cut(text)] if findings and findings[0].type == "schema" else _wrapped(text)
        return
    for each in findings:
        score = "" if each.verdict in ("error", "skipped") else f"{each.score:.3f}"
        text = f"{each.verdict:<10} {score:<5}  {flowed(each.name)}: {flowed(each.text)}".removesuffix(": ")
        yield from [_cut(text)] if each.type == "schema" or each.verdict == "pass" else _wrapped(text, indent="  ")


def _gate(report: RunReport) -> Iterator[Line]:
    match report.gate.verdict:
        case "pass":
            yield Line("gate: passed", "good")
        case "dry-run":
            yield Line("gate: not applied to a dry run", "warn")
        case "nothing":
            yield Line(f"gate: {', '.join(report.gate.reasons)}", "warn")
        case _:
            enforced = " (not enforced: `agentv-ci report` judges all shards)" if report.gate.exit_code == 0 else ""
            yield Line(f"gate: not passed{enforced}", "bad")
            for reason in report.gate.reasons:
                yield Line(f"  {reason}", "bad")


def _answer(outcome: CaseOutcome) -> list[str]:
    """Return what was answered in at most two lines."""
    said = flowed(outcome.worst.answer) if outcome.worst is not None else ""
    return _wrapped(f"answer: {said}", indent="  ", limit=MAX_ANSWER) if said else []


def _wrapped(text: str, *, indent: str = "", limit: int = MAX_SENTENCE) -> list[str]:
    """A sentence on a few lines: its beginning, and its end, where causes stand."""
    lines = wrap(shortened(text, limit), WIDTH - 4, break_on_hyphens=False, subsequent_indent=indent)
    return [f"    {line}" for line in lines]


def _cut(text: str) -> str:
    """What needs no more than one line."""
    return f"    {text if len(text) <= WIDTH - 4 else text[: WIDTH - 5] + '…'}"
