"""Annotations of a finished run: one per case that did not pass, worst first, on the line that is to be looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from agentv_ci.analysis.outcomes import CaseOutcome, lost_trials, not_passed
from agentv_ci.contracts.action import Annotation, Level
from agentv_ci.contracts.report import GateReasonKind, GateResult
from agentv_ci.report.reported import ReportedRun
from agentv_ci.report.words import DRY_RUN, GATE
from agentv_ci.text import counted, on_one_line, shortened

MAX_ID = 100
MAX_LINE = 400
MAX_LINES = 8
"""Together less than the 4,096 characters that the runner keeps of a message."""


@dataclass(frozen=True, slots=True)
class EvaluatorPlace:
    """Which evaluator of which case is looked for."""

    suite: str
    case: str
    evaluator: str


EXPLAINED_BY_CASES: frozenset[GateReasonKind] = frozenset({"pass-rate", "mean-score", "errors", "nothing-graded"})
"""Reasons of a gate that the annotations of its cases explain."""

FindLine = Callable[[EvaluatorPlace], int | None]
"""Return the line of an evaluator that stands in its case; None: look at the case."""


def annotate(run: ReportedRun, find_line: FindLine) -> Iterator[Annotation]:
    """Yield what is to be shown, what matters most first.

    Failures are errors where they are why the gate is closed, and warnings where it is not.
    """
    report = run.report
    if report.dry_run:
        yield Annotation("notice", "Dry run", DRY_RUN.capitalize())
        return
    errors, failed = not_passed(run.outcomes, is_stopped=report.stopped is not None)
    level: Level = "warning" if report.gate.verdict == "pass" else "error"
    cases = [*errors, *failed]
    if level == "error" and not (cases and _is_explained_by_cases(report.gate)):
        # No line of a case says it, or not all of it.
        yield Annotation("notice" if report.gate.verdict == "nothing" else "error", *_gate(run))
    yield from (_case(each, level, find_line) for each in cases)
    for outcome, trial in lost_trials(run.outcomes):
        title = f"{_id(outcome)}: trial {trial.number} of {outcome.case.trials} has no verdict"
        yield _on_case(outcome, "warning", title, _line(trial.summary))
    for outcome in run.outcomes:
        if outcome.flaky:
            said = f"{outcome.passed} of {counted(len(outcome.graded), 'trial')} passed"
            yield _on_case(outcome, "notice", f"{_id(outcome)}: flaky", said)


def _is_explained_by_cases(gate: GateResult) -> bool:
    """Whether the annotations of cases explain every reason; run reports of older versions have no causes."""
    kinds = {each.kind for each in gate.causes}
    return kinds <= EXPLAINED_BY_CASES and bool(kinds or not gate.reasons)


def _gate(run: ReportedRun) -> tuple[str, str]:
    gate = run.report.gate
    return f"Evaluations: {GATE[gate.verdict]}", "\n".join(map(_line, gate.reasons[:MAX_LINES])) or GATE[gate.verdict]


def _case(outcome: CaseOutcome, level: Level, find_line: FindLine) -> Annotation:
    score = "" if outcome.verdict == "error" else f" {outcome.score:.3f}"
    wrong = [each for each in outcome.findings if each.verdict not in ("pass", "skipped")]
    said = [_line(f"{each.title}: {each.text}" if each.text else f"{each.title}: {each.verdict}") for each in wrong]
    more = [f"… and {counted(len(said) - MAX_LINES, 'evaluator')} more"] if len(said) > MAX_LINES else []
    facts = f"target {_line(outcome.target)}"
    if len(outcome.trials) > 1:
        facts += f", {outcome.passed} of {len(outcome.trials)} trials passed"
    message = "\n".join([*(said[:MAX_LINES] or [_line(outcome.summary)]), *more, facts])
    case = outcome.case
    line = find_line(EvaluatorPlace(case.suite, case.id, wrong[0].name)) if len(wrong) == 1 else None
    annotation = _on_case(outcome, level, f"{_id(outcome)}: {outcome.verdict}{score}", message, line)
    return replace(annotation, is_failure=True)


def _on_case(outcome: CaseOutcome, level: Level, title: str, message: str, line: int | None = None) -> Annotation:
    source = outcome.case.source
    return Annotation(level, title, message, source.path, line or source.line)


def _id(outcome: CaseOutcome) -> str:
    return shortened(on_one_line(outcome.case.id), MAX_ID)


def _line(text: str) -> str:
    return shortened(on_one_line(text), MAX_LINE)
