"""From trials to the outcome of a case.

The score is the mean of the graded trials. A case passes when enough of all its trials pass (`require`), and is
`error` when none was graded. Flaky is a mark beside the verdict: its graded trials disagree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from agentv_ci.contracts.exchange import Verdict
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.results import BORDERLINE, PRECISION, EvaluatorResult, ResultRow, UsageRecord
from agentv_ci.outside import shortened

MAX_FINDING = 300
MAX_FINDINGS = 10_000
"""Findings that are kept; of a run with more, those of the first rows."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one evaluator said of an answer that did not pass."""

    name: str
    type: str
    verdict: str
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What remains of a row."""

    number: int
    verdict: Verdict
    score: float
    summary: str
    """Why it did not pass, in one line."""
    findings: tuple[Finding, ...] = ()
    """The same, evaluator by evaluator; empty when it passed."""


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What became of a case."""

    case: PlanCase
    verdict: Verdict
    score: float
    flaky: bool
    trials: tuple[TrialOutcome, ...]

    @property
    def errors(self) -> int:
        """Trials without a verdict; trials that never ran count."""
        return sum(trial.verdict == "error" for trial in self.trials) + self.case.trials - len(self.trials)

    @property
    def summary(self) -> str:
        """Why it did not pass, in one line."""
        worst = self._worst
        return worst.summary if worst is not None else "" if self.trials else "it never ran"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Why it did not pass, evaluator by evaluator."""
        return self._worst.findings if self._worst is not None else ()

    @property
    def _worst(self) -> TrialOutcome | None:
        worst = ("error",) if self.verdict == "error" else ("fail", "borderline", "error")
        return next((trial for verdict in worst for trial in self.trials if trial.verdict == verdict), None)


class Tally:
    """Collects rows, keeping little more than their scores."""

    def __init__(self, plan: Plan) -> None:
        self.rows = 0
        self.usage = UsageRecord()
        """Tokens of answers and judges together."""
        self._plan = plan
        self._findings_left = MAX_FINDINGS
        self._trials: dict[tuple[str, str], list[TrialOutcome]] = {(case.suite, case.id): [] for case in plan.cases}

    def add(self, row: ResultRow) -> None:
        """Take in a row; rows of other plans do not count."""
        trials = self._trials.get((row.suite, row.eval_id))
        if trials is None:
            return
        self.rows += 1
        findings = _findings(row) if self._findings_left > 0 else ()
        self._findings_left -= len(findings)
        trials.append(TrialOutcome(row.trial, row.verdict, row.score, shortened(_summary(row), MAX_FINDING), findings))
        for used in (row.usage, row.judge_usage):
            self.usage = _sum(self.usage, used)

    def outcomes(self) -> tuple[CaseOutcome, ...]:
        """Return every case of the plan, in its order."""
        return tuple(_outcome(case, self._trials) for case in self._plan.cases)


def _outcome(case: PlanCase, trials: Mapping[tuple[str, str], list[TrialOutcome]]) -> CaseOutcome:
    ran = tuple(sorted(trials[case.suite, case.id], key=lambda trial: trial.number))
    graded = [trial for trial in ran if trial.verdict != "error"]
    if not graded:
        return CaseOutcome(case, "error", 0.0, flaky=False, trials=ran)
    score = round(math.fsum(trial.score for trial in graded) / len(graded), PRECISION)
    passed = sum(trial.verdict == "pass" for trial in graded)
    verdict: Verdict = "pass" if _is_enough(passed, case) else "borderline" if score >= BORDERLINE else "fail"
    if len(graded) == 1 and verdict != "pass" and graded[0].verdict != "pass":
        verdict = graded[0].verdict
    return CaseOutcome(case, verdict, score, flaky=0 < passed < len(graded), trials=ran)


def _is_enough(passed: int, case: PlanCase) -> bool:
    match case.require:
        case "majority":
            return passed * 2 > case.trials
        case "all":
            return passed == case.trials
        case "any":
            return passed > 0


def _findings(row: ResultRow) -> tuple[Finding, ...]:
    if row.verdict == "pass":
        return ()
    return tuple(
        Finding(_name(each), each.type, each.verdict, each.score, shortened(_text(each), MAX_FINDING))
        for each in row.evaluator_results
    )


def _name(result: EvaluatorResult) -> str:
    return f"{result.name} (required)" if result.required and result.verdict != "pass" else result.name


def _text(result: EvaluatorResult) -> str:
    said = result.hits if result.verdict == "pass" else result.misses
    return "; ".join(said) or result.reasoning


def _summary(row: ResultRow) -> str:
    if row.error is not None:
        return row.error if row.error_kind == "evaluator" else f"{row.error_kind}: {row.error}"
    return "; ".join(row.misses) or row.reasoning


def _sum(first: UsageRecord, second: UsageRecord | None) -> UsageRecord:
    if second is None:
        return first
    both = ((name, getattr(first, name), getattr(second, name)) for name in UsageRecord.model_fields)
    return UsageRecord(**{name: one if two is None else (one or 0) + two for name, one, two in both})
