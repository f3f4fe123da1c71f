"""From trials to the outcome of a case.

The score is the mean of the graded trials. A case passes when enough of all its trials pass (`require`), and is
`error` when none was graded. Flaky is a mark beside the verdict: its graded trials disagree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agentv_ci.contracts.exchange import Verdict
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.results import BORDERLINE, PRECISION, EvaluatorResult, ResultRow, RowSource, UsageRecord
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


CaseKey = tuple[str, str, str]
"""Suite, case id and the name of the target that answers."""


@dataclass(frozen=True, slots=True)
class RowCase:
    """A case as its rows know it."""

    id: str
    suite: str
    source: RowSource
    trials: int
    require: Literal["majority", "all", "any"]


Case = PlanCase | RowCase


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What became of a case."""

    case: Case
    verdict: Verdict
    score: float
    flaky: bool
    trials: tuple[TrialOutcome, ...]

    @property
    def errors(self) -> int:
        """Trials without a verdict; trials that never ran count."""
        return sum(trial.verdict == "error" for trial in self.trials) + self.missing

    @property
    def missing(self) -> int:
        """Trials that never ran."""
        return self.case.trials - len(self.trials)

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

    def __init__(self) -> None:
        self.rows = 0
        self.usage = UsageRecord()
        """Tokens of answers and judges together."""
        self._findings_left = MAX_FINDINGS
        self._picodollars: Counter[str] = Counter()
        """What rows cost, by suite: whole numbers come to the same sum in any order."""
        self._cases: dict[CaseKey, Case] = {}
        self._trials: dict[CaseKey, list[TrialOutcome]] = {}
        self._learns = True

    @classmethod
    def of(cls, plan: Plan) -> Tally:
        """Return a tally of a plan's cases; rows of other cases do not count."""
        tally = cls()
        tally._learns = False
        for case in plan.cases:
            tally._expect((case.suite, case.id, plan.targets[case.target].name), case)
        return tally

    def _expect(self, key: CaseKey, case: Case) -> None:
        self._cases[key] = case
        self._trials[key] = []

    def add(self, row: ResultRow) -> None:
        """Take in a row; without a plan it tells its case too."""
        key = (row.suite, row.eval_id, row.target)
        if key not in self._cases:
            if not self._learns:
                return
            self._expect(key, RowCase(row.eval_id, row.suite, row.source, row.trials, row.require))
        self.rows += 1
        findings = _findings(row) if self._findings_left > 0 else ()
        self._findings_left -= len(findings)
        summary = "" if row.verdict == "pass" else shortened(_summary(row), MAX_FINDING)
        self._trials[key].append(TrialOutcome(row.trial, row.verdict, row.score, summary, findings))
        for used in (row.usage, row.judge_usage):
            self.usage = _sum(self.usage, used)
        for cost in (row.cost_usd, row.judge_cost_usd):
            if cost is not None:
                self._picodollars[row.suite] += round(cost * 1e12)

    def cost_usd(self, suites: Iterable[str]) -> float | None:
        """Return what answers and judges of some suites cost, as far as it is known; None when nothing is."""
        known = [self._picodollars[suite] for suite in suites if suite in self._picodollars]
        return sum(known) / 1e12 if known else None

    def outcomes(self) -> tuple[CaseOutcome, ...]:
        """Return every case: in the plan's order, else in that of the eval files."""
        cases: Iterable[tuple[CaseKey, Case]] = self._cases.items()
        if self._learns:
            cases = sorted(cases, key=lambda known: (known[0][0], known[1].source.line, known[0]))
        return tuple(_outcome(case, self._trials[key]) for key, case in cases)


def _outcome(case: Case, trials: Sequence[TrialOutcome]) -> CaseOutcome:
    ran = tuple(sorted(trials, key=lambda trial: trial.number))
    graded = [trial for trial in ran if trial.verdict != "error"]
    if not graded:
        return CaseOutcome(case, "error", 0.0, flaky=False, trials=ran)
    score = round(math.fsum(trial.score for trial in graded) / len(graded), PRECISION)
    passed = sum(trial.verdict == "pass" for trial in graded)
    verdict: Verdict = "pass" if _is_enough(passed, case) else "borderline" if score >= BORDERLINE else "fail"
    if len(graded) == 1 and verdict != "pass" and graded[0].verdict != "pass":
        verdict = graded[0].verdict
    return CaseOutcome(case, verdict, score, flaky=0 < passed < len(graded), trials=ran)


def _is_enough(passed: int, case: Case) -> bool:
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
