"""From trials to the outcome of a case. Flaky is a mark beside its verdict: its graded trials disagree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agentv_ci.contracts.exchange import Verdict
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.results import EvaluatorResult, ResultRow, RowSource
from agentv_ci.outside import shortened
from agentv_ci.report.spending import EvaluatorTally, Spending, sum_of
from agentv_ci.trials import Require, Result, is_settled, verdict_of

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
    answer: str = ""
    """What was answered, shortened; empty when it passed."""


OutcomeKey = tuple[str, str, str]
"""Suite, case id and the name of the target that answers."""


@dataclass(frozen=True, slots=True)
class RowCase:
    """A case as its rows know it."""

    id: str
    suite: str
    digest: str
    source: RowSource
    trials: int
    require: Require
    stop_when: Literal["decided"] | None


Case = PlanCase | RowCase


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What became of a case."""

    case: Case
    target: str
    """The name of the target that answers."""
    verdict: Verdict
    score: float
    trials: tuple[TrialOutcome, ...]

    @property
    def graded(self) -> tuple[TrialOutcome, ...]:
        """Trials with a verdict."""
        return tuple(trial for trial in self.trials if trial.verdict != "error")

    @property
    def passed(self) -> int:
        """Trials that passed."""
        return sum(trial.verdict == "pass" for trial in self.trials)

    @property
    def flaky(self) -> bool:
        """Whether its graded trials disagree."""
        return 0 < self.passed < len(self.graded)

    @property
    def errors(self) -> int:
        """Trials without a verdict; trials that never ran count."""
        return sum(trial.verdict == "error" for trial in self.trials) + self.missing

    @property
    def missing(self) -> int:
        """Trials that never ran and should have."""
        left = self.case.trials - len(self.trials)
        return 0 if left and self.case.stop_when is not None and self._is_settled else left

    @property
    def is_open(self) -> bool:
        """Whether trials that never ran could have given it another verdict."""
        return self.missing > 0 and not self._is_settled

    @property
    def _is_settled(self) -> bool:
        results = tuple(Result(trial.verdict, trial.score) for trial in self.trials)
        return is_settled(results, self.case.trials, self.case.require)

    @property
    def summary(self) -> str:
        """Why it did not pass, in one line."""
        worst = self.worst
        return worst.summary if worst is not None else "" if self.trials else "it never ran"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Why it did not pass, evaluator by evaluator."""
        return self.worst.findings if self.worst is not None else ()

    @property
    def worst(self) -> TrialOutcome | None:
        """The trial that says why it did not pass."""
        worst = ("error",) if self.verdict == "error" else ("fail", "borderline", "error")
        return next((trial for verdict in worst for trial in self.trials if trial.verdict == verdict), None)


def not_passed(outcomes: Iterable[CaseOutcome], *, is_stopped: bool) -> tuple[list[CaseOutcome], list[CaseOutcome]]:
    """Return the cases without a verdict, and those that failed, worst first.

    What a stopped run did not come to is neither: it is counted, not listed.
    """
    known = [each for each in outcomes if each.verdict != "pass"]
    errors = [each for each in known if each.verdict == "error" and (each.trials or not is_stopped)]
    failed = [each for each in known if each.verdict != "error" and not (is_stopped and each.is_open)]
    return errors, sorted(failed, key=lambda each: each.score)


class Tally:
    """Collects rows, keeping little more than their scores."""

    def __init__(self) -> None:
        self.rows = 0
        self.evaluators = EvaluatorTally()
        self._findings_left = MAX_FINDINGS
        self._spending: dict[tuple[str, str], Spending] = {}
        """What rows took, by suite and target."""
        self._cases: dict[OutcomeKey, Case] = {}
        self._trials: dict[OutcomeKey, list[TrialOutcome]] = {}
        self._learns = True

    @classmethod
    def of(cls, plan: Plan) -> Tally:
        """Return a tally of a plan's cases; rows of other cases do not count."""
        tally = cls()
        tally._learns = False
        for case in plan.cases:
            tally._expect((case.suite, case.id, plan.targets[case.target].name), case)
        return tally

    def _expect(self, key: OutcomeKey, case: Case) -> None:
        self._cases[key] = case
        self._trials[key] = []

    def add(self, row: ResultRow) -> None:
        """Take in a row; without a plan it tells its case too."""
        key = (row.suite, row.eval_id, row.target)
        if key not in self._cases:
            if not self._learns:
                return
            self._expect(key, _case_of(row))
        self.rows += 1
        findings, answer = _told(row) if self._findings_left > 0 else ((), "")
        self._findings_left -= len(findings)
        summary = "" if row.verdict == "pass" else shortened(_summary(row), MAX_FINDING)
        self._trials[key].append(TrialOutcome(row.trial, row.verdict, row.score, summary, findings, answer))
        self._spending.setdefault((row.suite, row.target), Spending()).add(row)
        self.evaluators.add(row.evaluator_results)

    @property
    def spending(self) -> Spending:
        """What answers and judges took."""
        return sum_of(self._spending.values())

    def spending_by(self, what: Literal["suite", "target"]) -> dict[str, Spending]:
        """Return the same for each suite, or for each target that answers."""
        grouped: dict[str, list[Spending]] = {}
        for (suite, target), spent in self._spending.items():
            grouped.setdefault(suite if what == "suite" else target, []).append(spent)
        return {name: sum_of(spent) for name, spent in grouped.items()}

    def outcomes(self) -> tuple[CaseOutcome, ...]:
        """Return every case: in the plan's order, else in that of the eval files."""
        cases: Iterable[tuple[OutcomeKey, Case]] = self._cases.items()
        if self._learns:
            cases = sorted(cases, key=lambda known: (known[0][0], known[1].source.line, known[0]))
        return tuple(_outcome(case, key[2], self._trials[key]) for key, case in cases)


def _case_of(row: ResultRow) -> RowCase:
    return RowCase(row.eval_id, row.suite, row.digest, row.source, row.trials, row.require, row.stop_when)


def _outcome(case: Case, target: str, trials: Sequence[TrialOutcome]) -> CaseOutcome:
    ran = tuple(sorted(trials, key=lambda trial: trial.number))
    verdict, score = verdict_of([Result(each.verdict, each.score) for each in ran], case.trials, case.require)
    return CaseOutcome(case, target, verdict, score, ran)


def _told(row: ResultRow) -> tuple[tuple[Finding, ...], str]:
    """Return what evaluators said of an answer that did not pass, and its beginning and end."""
    if row.verdict == "pass":
        return (), ""
    findings = (
        Finding(_name(each), each.type, each.verdict, each.score, shortened(_text(each), MAX_FINDING))
        for each in row.evaluator_results
    )
    return tuple(findings), shortened(row.candidate_answer, MAX_FINDING)


def _name(result: EvaluatorResult) -> str:
    return f"{result.name} (required)" if result.required and result.verdict != "pass" else result.name


def _text(result: EvaluatorResult) -> str:
    said = result.hits if result.verdict == "pass" else result.misses
    return "; ".join(said) or result.reasoning


def _summary(row: ResultRow) -> str:
    if row.error is not None:
        return row.error if row.error_kind == "evaluator" else f"{row.error_kind}: {row.error}"
    return "; ".join(row.misses) or row.reasoning
