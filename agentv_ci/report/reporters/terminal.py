"""The summary at the end of a run, for 80 columns; colours are only named here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from agentv_ci.contracts.report import RunReport, Statistics
from agentv_ci.contracts.results import UsageRecord
from agentv_ci.outside import flowed, printable, shortened
from agentv_ci.report.outcomes import CaseOutcome
from agentv_ci.report.sections import (
    MAX_SHOWN,
    Line,
    Style,
    comparison_lines,
    flaky_lines,
    group_lines,
    scenario_lines,
)
from agentv_ci.suggestions import counted

WIDTH = 80
MAX_SENTENCE = 300
BAR = 30

_STYLES: dict[str, Style] = {"pass": "good", "borderline": "warn", "fail": "bad", "error": "bad"}


def render(report: RunReport, outcomes: Sequence[CaseOutcome]) -> Iterator[Line]:
    """Yield the summary: errors, failures, figures, the gate."""
    if report.dry_run:
        yield Line("dry run: the mock answered, no score below means anything", "warn")
    # What a stopped run did not come to is counted, not listed.
    errors = [each for each in outcomes if each.verdict == "error" and (each.trials or report.stopped is None)]
    yield from _cases("errors", errors)
    failed = [
        each for each in outcomes if each.verdict in ("fail", "borderline") and not (report.stopped and each.is_open)
    ]
    yield from _cases("failures, worst first", sorted(failed, key=lambda each: each.score))
    yield from flaky_lines(report.repeated)
    counts = report.counts
    never_ran = counts.not_run if report.stopped else 0
    said = [f"{counts.passed} passed", f"{counts.failed} failed", counted(counts.errored - never_ran, "error")]
    said += [f"{never_ran} never ran"] if never_ran else []
    said += [f"{counts.flaky} flaky"] if counts.flaky else []
    shard = f" in shard {report.shard.index}/{report.shard.total}" if report.shard is not None else ""
    yield Line(f"{counted(counts.cases, 'case')}{shard}: {', '.join(said)}")
    yield from _statistics(report.statistics)
    yield from group_lines(report)
    yield from _usage(report.usage)
    yield from _cost(report)
    yield from scenario_lines(report.scenario_reports)
    if report.comparison is not None:
        yield from comparison_lines(report.comparison)
    yield from _gate(report)


def _cases(title: str, outcomes: Sequence[CaseOutcome]) -> Iterator[Line]:
    if not outcomes:
        return
    yield Line(f"{title}:")
    for outcome in outcomes[:MAX_SHOWN]:
        source = outcome.case.source
        score = "" if outcome.verdict == "error" else f" {outcome.score:.3f}"
        style = _STYLES[outcome.verdict]
        place = f"{printable(outcome.case.id)}  ({printable(source.path)}:{source.line})"
        yield Line(f"  {outcome.verdict}{score}  {place}", style)
        yield from map(Line, _reasons(outcome))
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


def _statistics(figures: Statistics) -> Iterator[Line]:
    if figures.mean is None:
        return
    names = ("mean", "median", "min", "max", "stdev")
    yield Line("  ".join(f"{name} {getattr(figures, name):.3f}" for name in names))
    most = max(figures.histogram)
    for index, number in enumerate(figures.histogram):
        low, high = index / 5, (index + 1) / 5
        closing = "]" if index == len(figures.histogram) - 1 else ")"
        bar = "#" * -(-number * BAR // most) if number else ""
        yield Line(f"[{low:.1f}, {high:.1f}{closing}  {number:>5}  {bar}".rstrip())


def _usage(usage: UsageRecord) -> Iterator[Line]:
    if usage.total_tokens is not None or usage.input_tokens is not None or usage.output_tokens is not None:
        yield Line(
            f"tokens: {usage.input_tokens or 0:,} in, {usage.output_tokens or 0:,} out, "
            f"{usage.total_tokens or 0:,} in all"
        )


def _cost(report: RunReport) -> Iterator[Line]:
    if report.cost_usd is not None:
        judges = [each.judge_cost_usd for each in report.suites if each.judge_cost_usd is not None]
        included = f", ${sum(judges):.4f} of it for judges" if judges else ""
        yield Line(f"cost: ${report.cost_usd:.4f}{included}")
    if report.unpriced_models:
        names = ", ".join(printable(each) for each in report.unpriced_models)
        yield Line(f"no price is known for {names}: the cost lacks it", "warn")
    lowered = sum(change.after < change.before for change in report.concurrency)
    if lowered:
        times = "once" if lowered == 1 else f"{lowered} times"
        yield Line(f"asked too often for a server, and slowed down {times}; see the run report", "warn")


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


def _wrapped(text: str, *, indent: str = "") -> list[str]:
    """A sentence on a few lines: its beginning, and its end, where causes stand."""
    lines = wrap(shortened(text, MAX_SENTENCE), WIDTH - 4, break_on_hyphens=False, subsequent_indent=indent)
    return [f"    {line}" for line in lines]


def _cut(text: str) -> str:
    """What needs no more than one line."""
    return f"    {text if len(text) <= WIDTH - 4 else text[: WIDTH - 5] + '…'}"
