"""Compute the outcome of each case from its trials."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.analysis.makeup import NO_MAKEUP, Makeup, makeup_of
from agentv_ci.analysis.spending import EvaluatorTally, Spending, sum_of
from agentv_ci.contracts.base import UNGRADED, Require, Verdict
from agentv_ci.contracts.case_head import Case, RowPlace
from agentv_ci.contracts.case_key import CaseKey, in_matrix
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.quarantine import Quarantine
from agentv_ci.contracts.stored_rows import AnyResult, AnyRow
from agentv_ci.results.trials import Result, is_settled, verdict_of_trials
from agentv_ci.text import shortened

MAX_FINDING = 300
MAX_FINDINGS = 10_000
"""Most findings and answers in memory; a larger run keeps those of its worst trials."""


class Finding(Struct, frozen=True, gc=False):
    """The result of one evaluator for an answer that did not pass."""

    name: str
    type: str
    verdict: str
    score: float
    text: str
    required: bool = False
    """Whether it alone fails the case."""

    @property
    def title(self) -> str:
        """Its name, marked when it is required."""
        return f"{self.name} (required)" if self.required else self.name


class TrialOutcome(Struct, frozen=True, gc=False):
    """The part of a row that is kept in memory."""

    number: int
    verdict: Verdict
    score: float
    summary: str
    """Why it did not pass, in one line."""
    duration_ms: int = 0
    """How long its answer took."""
    findings: tuple[Finding, ...] = ()
    """Why it did not pass, by evaluator; empty when it passed."""
    answer: str = ""
    """The shortened answer; empty when it passed."""
    cost_usd: float | None = None
    """Of the answer; None if unknown or not asked for."""
    tokens: int | None = None
    is_cached: bool = False
    """Whether its answer was not asked for."""


_Rank = tuple[bool, float, CaseKey, int]
"""A sort key of trials, the worst first: errors, then scores, then the trial."""


class RowCase(Struct, frozen=True, gc=False):
    """A case as described by its rows."""

    id: str
    suite: str
    digest: str
    source: RowPlace
    trials: int
    require: Require
    stop_when: Literal["decided"] | None
    tags: tuple[str, ...] = ()
    arm: str | None = None
    """Of an experiment."""

    @property
    def demand(self) -> tuple[int, bool, str, str, int]:
        """A sort key for rows that describe the case differently: the largest counts."""
        return self.trials, self.stop_when is None, self.require, self.digest, self.source.line


class CaseOutcome(Struct, frozen=True, gc=False):
    """The outcome of a case."""

    case: Case
    target: str
    """The name of the target that answers."""
    verdict: Verdict
    score: float
    """0 if it is not graded."""
    trials: tuple[TrialOutcome, ...]
    not_run: bool = False
    """Whether the run was stopped before its first trial; its verdict is `error`."""
    quarantine: Quarantine | None = None
    """What takes it out of the gate; None: it gates."""
    makeup: Makeup = NO_MAKEUP
    """Unknown unless runs are compared."""

    @property
    def key(self) -> CaseKey:
        """Suite, id and target, unique in a run."""
        return self.case.suite, self.case.id, self.target

    @property
    def graded(self) -> tuple[TrialOutcome, ...]:
        """Trials with a verdict."""
        return tuple(trial for trial in self.trials if trial.verdict not in UNGRADED)

    @property
    def is_graded(self) -> bool:
        """Whether it has a score."""
        return self.verdict not in UNGRADED

    @property
    def passed(self) -> int:
        """Trials that passed."""
        return sum(trial.verdict == "pass" for trial in self.trials)

    @property
    def flaky(self) -> bool:
        """Whether its graded trials disagree; a mark, not a verdict."""
        return len(self.trials) > 1 and 0 < self.passed < len(self.graded)

    @property
    def duration_s(self) -> float:
        """How long its slowest answer took."""
        return max((trial.duration_ms for trial in self.trials), default=0) / 1000

    @property
    def errors(self) -> int:
        """Trials without a verdict; trials without a row count."""
        return sum(trial.verdict == "error" for trial in self.trials) + self.missing

    @property
    def missing(self) -> int:
        """Trials that should have a row and do not; a skipped case has one row for all."""
        if self.verdict == "skipped":
            return 0
        left = max(self.case.trials - len(self.trials), 0)
        return 0 if left and self.case.stop_when is not None and self._is_settled else left

    @property
    def is_open(self) -> bool:
        """Whether trials without a row could change its verdict."""
        return self.missing > 0 and not self._is_settled

    @property
    def _is_settled(self) -> bool:
        results = tuple(Result(trial.verdict, trial.score) for trial in self.trials)
        return is_settled(results, self.case.trials, self.case.require)

    @property
    def summary(self) -> str:
        """Why it did not pass, in one line; of a skipped case, why it is skipped."""
        if self.verdict == "skipped":
            return self.trials[0].summary
        worst = self.worst
        return worst.summary if worst is not None else "" if self.trials else "not run" if self.not_run else "no result"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Why it did not pass, by evaluator."""
        return self.worst.findings if self.worst is not None else ()

    @property
    def worst(self) -> TrialOutcome | None:
        """The trial that explains why it did not pass."""
        worst = ("error",) if self.verdict == "error" else ("fail", "borderline", "error")
        return next((trial for verdict in worst for trial in self.trials if trial.verdict == verdict), None)


def in_matrix_of(outcomes: Sequence[CaseOutcome]) -> AbstractSet[tuple[str, str]]:
    """Return suite and id of the cases that several targets answer."""
    is_one = len({each.target for each in outcomes}) < 2
    return frozenset() if is_one else in_matrix(each.key for each in outcomes)


class _Tallied(Struct, gc=False):
    """A case, and its trials so far."""

    case: Case
    trials: tuple[TrialOutcome, ...] = ()
    makeup: Makeup = NO_MAKEUP


class Tally:
    """Collects rows, and keeps little more than their scores."""

    def __init__(self, targets: Iterable[str] = (), *, compares: bool = False) -> None:
        """`targets` has the order of targets, if there is no plan; `compares`: whether two runs are compared."""
        self._compares = compares
        self._ranks = {name: rank for rank, name in enumerate(dict.fromkeys(targets))}
        self.rows = 0
        self.cached = 0
        """Rows whose answer was not asked for."""
        self.evaluators = EvaluatorTally()
        self._findings = 0
        self._detailed: list[tuple[_Rank, int]] = []
        """Trials with findings, the worst first, each with its index among the trials of its case."""
        self._spending: defaultdict[tuple[str, str], Spending] = defaultdict(Spending)
        """Spending by suite and target."""
        self._cases: dict[CaseKey, _Tallied] = {}
        self._learns = True

    @classmethod
    def of(cls, plan: Plan, *, compares: bool = False) -> Tally:
        """Return a tally of the cases of a plan; rows of other cases are ignored."""
        tally = cls(compares=compares)
        tally._learns = False
        for case in heads_of(plan):
            tally._cases[plan.key_of(case)] = _Tallied(case)
        return tally

    def add(self, row: AnyRow) -> None:
        """Add a row; without a plan, it also describes its case."""
        key = row.case_key
        if self._learns:
            self._learn(row)
        elif key not in self._cases:
            return
        self.rows += 1
        self.cached += row.cached
        tallied = self._cases[key]
        tallied.trials += (trial_outcome(row),)
        if self._compares and row.verdict not in UNGRADED:
            tallied.makeup = tallied.makeup.plus(makeup_of(row))
        if row.verdict not in ("pass", "skipped"):
            self._bound_findings((row.verdict != "error", row.score or 0.0, key, row.trial))
        self._spending[row.suite, key[2]].count(row)
        self.evaluators.add(row.evaluator_results)

    def _learn(self, row: AnyRow) -> None:
        """Describe a case by a row; when rows disagree, the one that expects most counts, in any order."""
        key = row.case_key
        place = RowPlace(row.source.path, row.source.line)
        described = row.trials, row.require, row.stop_when, row.tags, row.arm
        case = RowCase(row.eval_id, row.suite, row.digest, place, *described)
        known = self._cases.get(key)
        if known is None:
            self._cases[key] = _Tallied(case)
        elif isinstance(known.case, RowCase) and known.case.demand < case.demand:
            known.case = case

    def _bound_findings(self, rank: _Rank) -> None:
        """Count the findings of a case's newest trial; above the limit, drop those of the least bad trials."""
        trials = self._cases[rank[2]].trials
        insort(self._detailed, (rank, len(trials) - 1))
        self._findings += len(trials[-1].findings) + 1
        while self._findings > MAX_FINDINGS:
            (_, _, key, _), place = self._detailed.pop()
            trials = self._cases[key].trials
            self._findings -= len(trials[place].findings) + 1
            brief = replace(trials[place], findings=(), answer="")
            self._cases[key].trials = (*trials[:place], brief, *trials[place + 1 :])

    @property
    def spending(self) -> Spending:
        """Spending on answers and judges."""
        return sum_of(self._spending.values())

    def spending_by(self, what: Literal["suite", "target"]) -> dict[str, Spending]:
        """Return the spending of each suite, or of each target that answers."""
        grouped: dict[str, list[Spending]] = {}
        for (suite, target), spent in self._spending.items():
            grouped.setdefault(suite if what == "suite" else target, []).append(spent)
        return {name: sum_of(spent) for name, spent in grouped.items()}

    def outcomes(self, *, leaves_cases: bool = False, is_decided: bool = False) -> tuple[CaseOutcome, ...]:
        """Return all outcomes in the order of the plan, else of the eval files.

        `leaves_cases`: whether cases without rows did not run; `is_decided`: whether the trials that ran were enough.
        """
        cases: Iterable[tuple[CaseKey, _Tallied]] = self._cases.items()
        if self._learns:
            cases = sorted(cases, key=self._place)
        return tuple(_outcome(known, key[2], leaves_cases=leaves_cases, is_decided=is_decided) for key, known in cases)

    def _place(self, known: tuple[CaseKey, _Tallied]) -> tuple[str, int, str, int, str]:
        (suite, case_id, target), tallied = known
        return suite, tallied.case.source.line, case_id, self._ranks.get(target, len(self._ranks)), target


def _outcome(tallied: _Tallied, target: str, *, leaves_cases: bool, is_decided: bool) -> CaseOutcome:
    case, ran = tallied.case, tallied.trials
    if len(ran) > 1:
        ran = tuple(sorted(ran, key=lambda each: each.number))
    trials = len(ran) if is_decided and ran else case.trials
    verdict, score = verdict_of_trials([Result(each.verdict, each.score) for each in ran], trials, case.require)
    not_run = leaves_cases and not ran
    return CaseOutcome(case, target, verdict, _same(score), ran, not_run=not_run, makeup=tallied.makeup)


def _same(score: float) -> float:
    """Return the same object for the scores of most trials: one of its own for each takes 24 bytes."""
    return 1.0 if score == 1.0 else 0.0 if score == 0.0 else score


def trial_outcome(row: AnyRow) -> TrialOutcome:
    """Return the part of a row that says why it did not pass."""
    has_passed = row.verdict == "pass"
    return TrialOutcome(
        row.trial,
        row.verdict,
        _same(row.score or 0.0),
        summary="" if has_passed else shortened(_summary(row), MAX_FINDING),
        duration_ms=row.duration_ms,
        findings=() if has_passed else tuple(map(_finding, row.evaluator_results)),
        answer="" if has_passed else shortened(row.candidate_answer, MAX_FINDING),
        cost_usd=None if row.cached else row.cost_usd,
        tokens=row.usage.total_tokens,
        is_cached=row.cached,
    )


def _finding(result: AnyResult) -> Finding:
    reasons = result.hits if result.verdict == "pass" else result.misses
    return Finding(
        result.name,
        result.type,
        result.verdict,
        result.score,
        shortened("; ".join(reasons) or result.reasoning, MAX_FINDING),
        result.required and result.verdict != "pass",
    )


def _summary(row: AnyRow) -> str:
    if row.verdict == "skipped":
        return row.skip or "no reason is given"
    if row.error is not None:
        return row.error if row.error_kind == "evaluator" else f"{row.error_kind}: {row.error}"
    return "; ".join(row.misses) or row.reasoning
