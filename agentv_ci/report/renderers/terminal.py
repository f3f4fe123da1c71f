"""The summary at the end of a run, for 80 columns, with styles that the terminal maps to colors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.cases.trial_outcomes import Finding
from agentv_ci.base.text import on_one_line, shortened
from agentv_ci.contracts.report import GateResult
from agentv_ci.report.experiment import experiment_lines, verdict_line
from agentv_ci.report.lines import (
    MAX_SHOWN,
    STYLES,
    Line,
    Style,
    comparison_lines,
    figure_lines,
    flaky_lines,
    matrix_lines,
    more_line,
    scenario_lines,
)
from agentv_ci.report.matrix import matrix_cases
from agentv_ci.report.quarantine import quarantine_lines
from agentv_ci.report.view import (
    DRY_RUN,
    GATE,
    RunView,
    counts_text,
    cut_text,
    duration_text,
    first_lines,
    left_out_text,
    score_text,
    stored_text,
    unknown_text,
)
from agentv_ci.report.wrapping import clipped, columns, wrapped

if TYPE_CHECKING:
    from agentv_ci.contracts.comparison import Comparison

WIDTH = 80
MAX_SENTENCE = 300
MAX_ANSWER = 140
MAX_COMMAND = 300
SLOWEST, SLOW_S, ENOUGH_CASES = 3, 1.0, 5
"""How many of the slowest cases are named, from how many seconds on, and in runs of how many cases.
"""


def render(run: RunView) -> Iterator[Line]:
    """Yield the summary: errors, failures, figures, the gate."""
    for line in _lines(run):
        if line.parts or columns(line.text) <= WIDTH:
            yield line
        else:
            yield from _folded(line)


def _folded(line: Line) -> Iterator[Line]:
    """Yield a sentence on several lines, with later lines indented further."""
    text = line.text.lstrip(" ")
    before = " " * (len(line.text) - len(text))
    for each in wrapped(text, WIDTH - len(before), indent="  ", whole=True):
        yield Line(f"{before}{each}", line.style)


def _lines(run: RunView) -> Iterator[Line]:
    report = run.report
    if report.dry_run:
        yield Line(f"dry run: {DRY_RUN}", "warn")
    yield from _not_passed(run)
    yield Line(counts_text(run), "strong")
    if (stored := stored_text(report)) is not None:
        yield Line(stored)
    for caveat in filter(None, [cut_text(report), unknown_text(run), left_out_text(report)]):
        yield Line(caveat, "warn")
    yield from matrix_lines(matrix_cases(run))
    yield from figure_lines(report)
    yield from _time(run)
    yield from scenario_lines(report.scenario_reports)
    if report.comparison is not None:
        yield from comparison_lines(report.comparison)
        yield from _tolerated(report.comparison)
    if report.experiment is not None:
        yield from experiment_lines(report.experiment)
    yield from _gate(report.gate)


def _not_passed(run: RunView) -> Iterator[Line]:
    yield from _cases("errors", run.errors, run)
    yield from _lost_trials(run)
    yield from _cases("failures, worst first", run.failures, run)
    yield from flaky_lines(run)
    yield from _skipped(run)
    yield from quarantine_lines(run)


def _tolerated(comparison: Comparison) -> Iterator[Line]:
    """Yield what is undecided but passes; otherwise it is among the reasons of the gate."""
    if comparison.when_undecided == "pass":
        for name in comparison.undecided:
            yield Line(f"undecided, which passes: {on_one_line(name)}", "warn")


def _cases(title: str, outcomes: Sequence[CaseOutcome], run: RunView) -> Iterator[Line]:
    if not outcomes:
        return
    yield Line(f"{title}:", "title")
    for outcome in outcomes[:MAX_SHOWN]:
        yield _headline(
            score_text(outcome.verdict, outcome.score), outcome, run, of_trial=_worst_of(outcome)
        )
        yield from map(Line, _reasons(outcome))
        for text in _answer(outcome):
            yield Line(text, "faint")
        if again := run.again(outcome):
            yield Line.of((f"    again: {_again(again)}", "faint"))
    yield from more_line(len(outcomes))
    yield Line("")


def _headline(
    verdict: str,
    outcome: CaseOutcome,
    run: RunView,
    style: Style | None = None,
    *,
    of_trial: str = "",
) -> Line:
    source = outcome.case.source
    return Line.of(
        (f"  {verdict}  ", style or STYLES[outcome.verdict]),
        (run.name(outcome.key), "strong"),
        (f"  ({on_one_line(source.path)}:{source.line}{of_trial})", "faint"),
    )


def _worst_of(outcome: CaseOutcome) -> str:
    """Return which of several trials the reasons are from."""
    several = len(outcome.trials) > 1 and outcome.worst is not None
    if several and outcome.worst:
        return f"; trial {outcome.worst.number} of {len(outcome.trials)}"
    return ""


def _lost_trials(run: RunView) -> Iterator[Line]:
    lost = run.lost_trials
    if not lost:
        return
    yield Line("trials without a verdict:", "title")
    for outcome, trial in lost[:MAX_SHOWN]:
        yield _headline(
            f"error  trial {trial.number} of {outcome.case.trials}", outcome, run, "bad"
        )
        yield from map(Line, _wrapped(on_one_line(trial.summary)))
    yield from more_line(len(lost))
    yield Line("")


def _skipped(run: RunView) -> Iterator[Line]:
    outcomes = run.skipped
    if not outcomes:
        return
    yield Line("skipped:", "title")
    for outcome in outcomes[:MAX_SHOWN]:
        text = f"{run.name(outcome.key)}: {on_one_line(outcome.summary)}"
        yield Line(f"  {clipped(text, WIDTH - 2)}", "faint")
    yield from more_line(len(outcomes))
    yield Line("")


def _again(command: str) -> str:
    """Return the command that runs a case again; if it is too long for a line, where to find it."""
    if len(command) <= MAX_COMMAND:
        return command
    return "see the reports"


def _reasons(outcome: CaseOutcome) -> Iterator[str]:
    """Yield why a case did not pass: the text of its only evaluator, or a line for each."""
    findings = outcome.findings
    if len(findings) < 2:
        text = on_one_line(outcome.summary)
        if findings and findings[0].type == "schema":
            yield _cut(text)
        else:
            yield from _wrapped(text)
        return
    for finding in findings:
        text = _finding(finding)
        if finding.type == "schema" or finding.verdict == "pass":
            yield _cut(text)
        else:
            yield from _wrapped(text, indent="  ")


def _finding(finding: Finding) -> str:
    score = ""
    if finding.verdict not in ("error", "skipped"):
        score = f"{finding.score:.3f}"
    about = f"{on_one_line(finding.title)}: {on_one_line(finding.text)}"
    return f"{finding.verdict:<10} {score:<5}  {about}".removesuffix(": ")


def _time(run: RunView) -> Iterator[Line]:
    """Yield how long the run took, and of several cases with long answers the slowest."""
    if run.report.duration_s is None:
        return
    slowest = nlargest(SLOWEST, run.outcomes, key=lambda outcome: outcome.duration_s)
    texts = [
        f"{run.name(outcome.key)} {duration_text(outcome.duration_s)}"
        for outcome in slowest
        if outcome.duration_s >= SLOW_S
    ]
    shown = ""
    if texts and len(run.outcomes) >= ENOUGH_CASES:
        shown = f"; slowest: {', '.join(texts)}"
    yield Line(f"time: {duration_text(run.report.duration_s)}{shown}")


def _gate(gate: GateResult) -> Iterator[Line]:
    match gate.verdict:
        case "pass":
            yield Line("gate: passed", "good")
        case "dry-run":
            yield Line("gate: not applied to a dry run", "warn")
        case "nothing":
            yield Line(f"gate: {', '.join(gate.reasons)}", "warn")
        case _:
            enforced = ""
            if gate.exit_code == 0:
                enforced = " (not enforced: `agentv-ci report` judges all shards)"
            yield Line(f"gate: {GATE[gate.verdict]}{enforced}", "bad")
            for text in first_lines(list(map(on_one_line, gate.reasons)), MAX_SHOWN):
                yield Line(f"  {text}", "bad")


def verdict(run: RunView) -> Line:
    """Return the verdict of a run as one line, with its first reason if the gate is not passed."""
    if (
        found := run.report.experiment
    ) is not None and run.report.gate.exit_code == found.exit_code:
        return verdict_line(found)
    gate, *reasons = _gate(run.report.gate)
    why = ""
    if reasons:
        why = f": {shortened(reasons[0].text.strip(), MAX_SENTENCE)}"
    more = ""
    if len(reasons) > 1:
        more = f" (and {len(run.report.gate.reasons) - 1} more)"
    return Line(f"{gate.text}{why}{more}; {counts_text(run)}", gate.style)


def _answer(outcome: CaseOutcome) -> list[str]:
    """Return the answer on at most two lines."""
    answer = ""
    if outcome.worst is not None:
        answer = on_one_line(outcome.worst.answer)
    if answer:
        return _wrapped(f"answer: {answer}", indent="  ", limit=MAX_ANSWER)
    return []


def _wrapped(text: str, *, indent: str = "", limit: int = MAX_SENTENCE) -> list[str]:
    """Return a sentence on a few lines, cut in the middle: causes are at the end."""
    return [f"    {line}" for line in wrapped(shortened(text, limit), WIDTH - 4, indent=indent)]


def _cut(text: str) -> str:
    """Return a text cut to one line."""
    return f"    {clipped(text, WIDTH - 4)}"
