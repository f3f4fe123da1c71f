"""Annotations of a finished run.

There is one per case that did not pass, worst first, on the line to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.cases.quarantine import gating
from agentv_ci.base.text import counted, on_one_line, shortened
from agentv_ci.contracts.action import Annotation, Level
from agentv_ci.contracts.report import GateReasonKind, GateResult
from agentv_ci.report.against_base import lowered_annotations
from agentv_ci.report.quarantine import sentence
from agentv_ci.report.view import (
    DRY_RUN,
    GATE,
    RunView,
    more_text,
    score_text,
    trials_text,
    wrong_of,
)

MAX_ID = 100
MAX_LINE = 400
MAX_LINES = 8
"""Together less than the 4,096 characters that the runner keeps of a message."""


EXPLAINED_BY_CASES: frozenset[GateReasonKind] = frozenset(
    {"pass-rate", "mean-score", "errors", "nothing-graded"}
)
"""Reasons of a gate that the annotations of its cases explain."""

FindLine = Callable[[str, str, str], int | None]
"""Return the line of an evaluator, by suite, case id and name; None: the case does not define it.
"""


def annotate(run: RunView, find_line: FindLine) -> Iterator[Annotation]:
    """Yield annotations, the most important first.

    Failures are errors if the gate is not passed, else warnings.
    """
    report = run.report
    yield from lowered_annotations(report.against_base)
    if report.dry_run:
        yield Annotation("notice", "Dry run", DRY_RUN.capitalize())
        return
    level: Level = "warning" if report.gate.verdict == "pass" else "error"
    cases = run.red
    if level == "error" and not (cases and _is_explained_by_cases(report.gate)):
        # The cases do not explain every reason.
        yield _gate(run)
    for case in cases:
        yield _case(case, run, level, find_line)
    yield from _remarks(run)


def _gate(run: RunView) -> Annotation:
    gate = run.report.gate
    reasons = "\n".join(map(_line, gate.reasons[:MAX_LINES])) or GATE[gate.verdict]
    return Annotation("notice" if gate.verdict == "nothing" else "error", run.title, reasons)


def _remarks(run: RunView) -> Iterator[Annotation]:
    """Yield lost trials, cases in quarantine that did not pass, and flaky cases."""
    for outcome, trial in run.lost_trials:
        what = "crashed" if trial.is_crash else "has no verdict"
        title = f"{_name(outcome, run)}: trial {trial.number} of {outcome.case.trials} {what}"
        yield _on_case(outcome, "warning", title, _line(trial.summary))
    for outcome in run.quarantined:
        if outcome.quarantine is not None and outcome.verdict != "pass":
            title = f"{_title(outcome, run)}, in quarantine"
            yield _on_case(outcome, "notice", title, _line(sentence(outcome.quarantine)))
    for outcome in gating(run.outcomes):
        if outcome.flaky:
            rate = f"{outcome.passed} of {counted(len(outcome.graded), 'trial')} passed"
            yield _on_case(outcome, "notice", f"{_name(outcome, run)}: flaky", rate)


def _is_explained_by_cases(gate: GateResult) -> bool:
    """Return whether the cases explain every reason.

    Run reports of older versions have no causes.
    """
    kinds = {cause.kind for cause in gate.causes}
    return kinds <= EXPLAINED_BY_CASES and bool(kinds or not gate.reasons)


def _case(outcome: CaseOutcome, run: RunView, level: Level, find_line: FindLine) -> Annotation:
    wrong = wrong_of(outcome.findings)
    lines = [
        _line(f"{finding.title}: {finding.text or finding.verdict}")
        for finding in wrong[:MAX_LINES]
    ]
    lines = lines or [_line(outcome.summary)]
    lines += more_text(len(wrong), MAX_LINES, "evaluator")
    facts = [f"target {_line(outcome.target)}", trials_text(outcome)]
    lines.append(", ".join(filter(None, facts)))
    case = outcome.case
    line = None
    if len(wrong) == 1:
        line = find_line(case.suite, case.id, wrong[0].name)
    annotation = _on_case(outcome, level, _title(outcome, run), "\n".join(lines), line)
    return replace(annotation, is_failure=True)


def _on_case(
    outcome: CaseOutcome, level: Level, title: str, message: str, line: int | None = None
) -> Annotation:
    source = outcome.case.source
    return Annotation(level, title, message, source.path, line or source.line)


def _title(outcome: CaseOutcome, run: RunView) -> str:
    return f"{_name(outcome, run)}: {score_text(outcome.verdict, outcome.score)}"


def _name(outcome: CaseOutcome, run: RunView) -> str:
    return shortened(run.name(outcome.key), MAX_ID)


def _line(text: str) -> str:
    return shortened(on_one_line(text), MAX_LINE)
