"""Collect the rows of a run, and compute the outcome of each case from its trials."""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from agentv_ci.analysis.cases.outcomes import CaseOutcome, FullOutcome, PassedOutcome, SharedHead
from agentv_ci.analysis.cases.provenance import NO_MAKEUP, Makeup, makeup_of
from agentv_ci.analysis.cases.spending import EvaluatorTally, Spending, sum_of
from agentv_ci.analysis.cases.trial_outcomes import (
    TrialOutcome,
    numbers_of,
    same_score,
    trial_outcome,
)
from agentv_ci.base.text import shortened
from agentv_ci.contracts.base import UNGRADED
from agentv_ci.contracts.cases import Case, CaseKey, RowCase
from agentv_ci.contracts.exchange import is_cut
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.results import ResultRow
from agentv_ci.results.trials import verdict_of_trials

MAX_REASON = 60
"""Characters of a finish reason, which servers may make up."""
MAX_FINDINGS = 10_000
"""Most findings and answers in memory; a larger run keeps those of its worst trials."""

_Rank = tuple[bool, float, CaseKey, int]
"""A sort key of trials, the worst first: errors, then scores, then the trial."""


class _Tallied(Struct, gc=False):
    """A case, and its trials so far."""

    case: Case
    target: str
    """The name of the target that answers."""
    trials: tuple[TrialOutcome, ...] = ()
    makeup: Makeup = NO_MAKEUP

    @property
    def id(self) -> str:
        """Its id."""
        return self.case.id

    @property
    def line(self) -> int:
        """The first line of the case."""
        return self.case.source.line

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the trials."""
        return numbers_of(self.trials)


class _Cases(Struct):
    """The cases of a suite that a target answers, by their ids."""

    known: dict[str, PassedOutcome | _Tallied] = field(default_factory=dict)
    spending: Spending = field(default_factory=Spending)

    def tallied(self, case_id: str) -> _Tallied:
        """Return a known case, so that trials can be added."""
        known = self.known[case_id]
        if isinstance(known, PassedOutcome):
            known = self.known[case_id] = _Tallied(known.case, known.target, known.trials)
        return known


class Tally:
    """Collects rows, and keeps little more than their scores."""

    def __init__(self, targets: Iterable[str] = (), *, compares: bool = False) -> None:
        """`targets` has the order of targets, if there is no plan.

        `compares`: whether two runs are compared.
        """
        self._compares = compares
        self._ranks = {name: rank for rank, name in enumerate(dict.fromkeys(targets))}
        self.rows = 0
        self.cached = 0
        """Rows whose answer was not asked for."""
        self.not_started: Counter[CaseKey] = Counter()
        """Trials of cases that had used what they may."""
        self.cut: Counter[str] = Counter()
        """Finish reason → answers that may not be whole."""
        self.evaluators = EvaluatorTally()
        self._findings = 0
        self._detailed: list[tuple[_Rank, int]] = []
        """Trials with findings, the worst first, each with its index among the trials of its case.
        """
        self._cases: defaultdict[tuple[str, str], _Cases] = defaultdict(_Cases)
        """The cases of each suite and target."""
        self._heads: dict[tuple[object, ...], SharedHead] = {}
        self._plan: Plan | None = None

    @classmethod
    def of(cls, plan: Plan, *, compares: bool = False) -> Tally:
        """Return a tally of the cases of a plan; rows of other cases are ignored."""
        tally = cls(compares=compares)
        tally._plan = plan
        for case in heads_of(plan):
            suite, case_id, target = plan.key_of(case)
            tally._cases[suite, target].known[case_id] = _Tallied(case, target)
        return tally

    def numbers(self, key: CaseKey) -> Sequence[int]:
        """Return the numbers of a case's trials so far."""
        suite, case_id, target = key
        known = self._cases[suite, target].known.get(case_id)
        if known is None:
            return ()
        return known.numbers

    def add(self, row: ResultRow) -> None:
        """Add a row; without a plan, it also describes its case."""
        suite, case_id, target = key = row.case_key
        cases = self._cases[suite, target]
        known = cases.known.get(case_id)
        if known is None and self._plan is not None:
            return
        self._count(row, cases.spending)
        if self._plan is None:
            shared = self._shared(row, target)
            if not self._compares and (passed := _with_passed(known, row, shared)) is not None:
                cases.known[case_id] = passed
                return
            self._describe(cases, row, shared)
        tallied = cases.tallied(case_id)
        tallied.trials += (trial_outcome(row),)
        if self._compares and row.verdict not in UNGRADED:
            tallied.makeup = tallied.makeup.plus(makeup_of(row))
        if row.verdict not in ("pass", "skipped"):
            self._bound_findings((row.verdict != "error", row.score or 0.0, key, row.trial))

    def _count(self, row: ResultRow, spending: Spending) -> None:
        self.rows += 1
        self.cached += row.cached
        if row.error_kind == "cancelled":
            self.not_started[row.case_key] += 1
        if row.finish_reason is not None and is_cut(row.finish_reason):
            self.cut[shortened(row.finish_reason, MAX_REASON)] += 1
        spending.count(row)
        self.evaluators.add(row.evaluator_results)

    def _shared(self, row: ResultRow, target: str) -> SharedHead:
        """Return what cases have in common with that of a row: texts that repeat are kept once."""
        given = (
            row.suite,
            target,
            row.source.path,
            row.trials,
            row.require,
            row.stop_when,
            row.tags,
            row.arm,
            row.threshold,
        )
        shared = self._heads.get(given)
        if shared is None:
            shared = self._heads[given] = SharedHead(*given)
        return shared

    @staticmethod
    def _describe(cases: _Cases, row: ResultRow, it: SharedHead) -> None:
        """Describe a case by a row.

        When rows disagree, the one that expects most counts, in any order.
        """
        described = it.trials, it.require, it.stop_when, it.tags, it.arm, it.threshold
        case = RowCase(row.eval_id, it.suite, row.digest, it.path, row.source.line, *described)
        if case.id not in cases.known:
            cases.known[case.id] = _Tallied(case, it.target)
            return
        known = cases.tallied(case.id)
        if isinstance(known.case, RowCase) and known.case.demand < case.demand:
            known.case = case

    def _bound_findings(self, rank: _Rank) -> None:
        """Count the findings of a case's newest trial.

        Above the limit, drop those of the least bad trials.
        """
        trials = self._tallied(rank[2]).trials
        insort(self._detailed, (rank, len(trials) - 1))
        self._findings += len(trials[-1].findings) + 1
        while self._findings > MAX_FINDINGS:
            (_, _, key, _), index = self._detailed.pop()
            tallied = self._tallied(key)
            trials = tallied.trials
            self._findings -= len(trials[index].findings) + 1
            brief = replace(trials[index], findings=(), answer="")
            tallied.trials = (*trials[:index], brief, *trials[index + 1 :])

    def _tallied(self, key: CaseKey) -> _Tallied:
        suite, case_id, target = key
        return self._cases[suite, target].tallied(case_id)

    @property
    def spending(self) -> Spending:
        """Spending on answers and judges."""
        return sum_of(cases.spending for cases in self._cases.values())

    def spending_by(self, what: Literal["suite", "target"]) -> Mapping[str, Spending]:
        """Return the spending of each suite, or of each target that answers."""
        totals: defaultdict[str, Spending] = defaultdict(Spending)
        for (suite, target), cases in self._cases.items():
            totals[suite if what == "suite" else target].add(cases.spending)
        return totals

    def outcomes(
        self, *, leaves_cases: bool = False, is_decided: bool = False
    ) -> tuple[CaseOutcome, ...]:
        """Return all outcomes in the order of the plan, else of the eval files.

        `leaves_cases`: whether cases without rows did not run; `is_decided`: whether the trials
        that ran were enough.
        """
        ran = self._in_order() if self._plan is None else self._as_planned(self._plan)
        return tuple(
            _outcome(known, leaves_cases=leaves_cases, is_decided=is_decided) for known in ran
        )

    def _as_planned(self, plan: Plan) -> Iterator[_Tallied]:
        return map(self._tallied, map(plan.key_of, heads_of(plan)))

    def _in_order(self) -> Iterator[PassedOutcome | _Tallied]:
        line = attrgetter("line")
        for _, keys in groupby(sorted(self._cases), itemgetter(0)):
            known: list[PassedOutcome | _Tallied] = []
            for key in keys:
                known += self._cases[key].known.values()
            # A key with all that decides would take more memory than the cases themselves.
            known.sort(key=line)
            for _, same in groupby(known, line):
                yield from sorted(same, key=self._place)

    def _place(self, known: PassedOutcome | _Tallied) -> tuple[str, int, str]:
        return known.id, self._ranks.get(known.target, len(self._ranks)), known.target


def _with_passed(
    known: PassedOutcome | _Tallied | None, row: ResultRow, shared: SharedHead
) -> PassedOutcome | None:
    """Return a case with one more trial, if all have passed."""
    if isinstance(known, _Tallied):
        return None
    passed = PassedOutcome.of(row, shared)
    if known is None or passed is None:
        return passed
    return known.plus(passed)


def _outcome(
    known: PassedOutcome | _Tallied, *, leaves_cases: bool, is_decided: bool
) -> CaseOutcome:
    if isinstance(known, PassedOutcome) and known.ran == known.shared.trials == 1:
        return known
    trials = known.trials
    if len(trials) > 1:
        trials = tuple(sorted(trials, key=attrgetter("number")))
    planned = len(trials) if is_decided and trials else known.case.trials
    verdict, score = verdict_of_trials(trials, planned, known.case.require)
    score = same_score(score)
    if isinstance(known, PassedOutcome) and known.ran == known.shared.trials:
        return replace(known, score=score)
    not_run = leaves_cases and not trials
    return FullOutcome(
        known.case, known.target, verdict, score, trials, not_run=not_run, makeup=known.makeup
    )
