"""The outcomes of cases."""

from __future__ import annotations

import struct as packing
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct

from agentv_ci.analysis.cases.provenance import NO_MAKEUP, Makeup
from agentv_ci.analysis.cases.trial_outcomes import Finding, TrialOutcome, same_score
from agentv_ci.contracts.base import UNGRADED, Require, Verdict
from agentv_ci.contracts.cases import Case, CaseKey, RowCase, in_matrix
from agentv_ci.contracts.results import ResultRow
from agentv_ci.results.trials import is_graded, is_settled

if TYPE_CHECKING:
    from agentv_ci.contracts.quarantine import Quarantine


class FullOutcome(Struct, frozen=True, gc=False):
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
    def in_full(self) -> FullOutcome:
        """The outcome itself."""
        return self

    @property
    def suite(self) -> str:
        """The eval file."""
        return self.case.suite

    @property
    def ran(self) -> int:
        """Number of trials that ran."""
        return len(self.trials)

    @property
    def graded(self) -> tuple[TrialOutcome, ...]:
        """Trials that count: those with a verdict, and crashed ones, as failed."""
        return tuple(filter(is_graded, self.trials))

    @property
    def crashed(self) -> int:
        """Trials with an error of the agent."""
        return sum(trial.is_crash for trial in self.trials)

    @property
    def has_verdict(self) -> bool:
        """Whether an answer was scored."""
        return self.verdict not in UNGRADED

    @property
    def is_graded(self) -> bool:
        """Whether it has a score, which is 0 if all of its trials crashed."""
        return self.has_verdict or self.crashed > 0

    @property
    def passed(self) -> int:
        """Trials that passed."""
        return self._verdicts.count("pass")

    @property
    def flaky(self) -> bool:
        """Whether its graded trials disagree; a mark, not a verdict."""
        return len(self.trials) > 1 and 0 < self.passed < len(self.graded)

    @property
    def duration_s(self) -> float:
        """How long its slowest answer took."""
        return max(self._durations_ms, default=0) / 1000

    @property
    def total_ms(self) -> int:
        """How long all its answers took."""
        return sum(self._durations_ms)

    @property
    def _durations_ms(self) -> list[int]:
        return [trial.duration_ms for trial in self.trials]

    @property
    def errors(self) -> int:
        """Trials without a verdict; trials without a row count."""
        return self._verdicts.count("error") + self.missing

    @property
    def _verdicts(self) -> list[Verdict]:
        return [trial.verdict for trial in self.trials]

    @property
    def missing(self) -> int:
        """Trials that should have a row and do not; a skipped case has one row for all."""
        if self.verdict == "skipped":
            return 0
        left = max(self.case.trials - len(self.trials), 0)
        if left and self.case.stop_when is not None and self._is_settled:
            return 0
        return left

    @property
    def is_open(self) -> bool:
        """Whether trials without a row could change its verdict."""
        return self.missing > 0 and not self._is_settled

    @property
    def _is_settled(self) -> bool:
        return is_settled(self.trials, self.case.trials, self.case.require)

    @property
    def summary(self) -> str:
        """Why it did not pass, in one line; of a skipped case, why it is skipped."""
        if self.verdict == "skipped":
            return self.trials[0].summary
        if self.worst is not None:
            return self.worst.summary
        if self.trials:
            return ""
        return "not run" if self.not_run else "no result"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Why it did not pass, by evaluator."""
        if self.worst is None:
            return ()
        return self.worst.findings

    @property
    def worst(self) -> TrialOutcome | None:
        """The trial that explains why it did not pass."""
        worst_first = ("error",) if self.verdict == "error" else ("fail", "borderline", "error")
        for verdict in worst_first:
            for trial in self.trials:
                if trial.verdict == verdict:
                    return trial
        return None


class SharedHead(Struct, frozen=True, gc=False):
    """What many cases have in common."""

    suite: str
    target: str
    path: str
    trials: int
    require: Require
    stop_when: Literal["decided"] | None
    tags: tuple[str, ...]
    arm: str | None
    threshold: float | None


_HEAD = packing.Struct("<32sI")
"""Digest and line of a case."""
_TRIAL = packing.Struct("<HdIId?")
"""Number, score, duration in ms, tokens + 1 (0: unknown), cost (-1: unknown), and whether the
answer is cached.
"""
UNKNOWN_COST = -1.0
_Record = tuple[int, float, int, int, float, bool]
_DIGITS = 2 * 32
"""Of a digest."""


class PassedOutcome(Struct, frozen=True, gc=False):
    """The outcome of a case whose trials all passed.

    Most of a large run is made of these, in a third of the memory or less.
    """

    id: str
    shared: SharedHead
    score: float
    packed: bytes
    """The rest of the case, and each trial."""

    verdict: ClassVar[Verdict] = "pass"
    has_verdict: ClassVar[bool] = True
    is_graded: ClassVar[bool] = True
    crashed: ClassVar[int] = 0
    is_open: ClassVar[bool] = False
    flaky: ClassVar[bool] = False
    errors: ClassVar[int] = 0
    missing: ClassVar[int] = 0
    not_run: ClassVar[bool] = False
    summary: ClassVar[str] = ""
    findings: ClassVar[tuple[Finding, ...]] = ()
    worst: ClassVar[None] = None
    quarantine: ClassVar[None] = None
    makeup: ClassVar[Makeup] = NO_MAKEUP

    @classmethod
    def of(cls, row: ResultRow, shared: SharedHead) -> PassedOutcome | None:
        """Return the outcome of one trial.

        None if it did not pass, or its digest or numbers are unusual.
        """
        tokens = row.usage.total_tokens
        if row.verdict != "pass" or (tokens is not None and tokens < 0):
            return None
        cost_usd = UNKNOWN_COST if row.cost_usd is None or row.cached else row.cost_usd
        score = same_score(row.score or 0.0)
        try:
            sha256 = bytes.fromhex(row.digest)
            head = _HEAD.pack(sha256, row.source.line)
            counted = 0 if tokens is None else tokens + 1
            trial = _TRIAL.pack(row.trial, score, row.duration_ms, counted, cost_usd, row.cached)
        except (ValueError, packing.error):
            return None
        if len(row.digest) != _DIGITS or sha256.hex() != row.digest:
            return None
        return cls(row.eval_id, shared, score, head + trial)

    def plus(self, other: PassedOutcome) -> PassedOutcome | None:
        """Return the outcome of the trials of both; None if they describe the case differently."""
        size = _HEAD.size
        if other.shared is not self.shared or other.packed[:size] != self.packed[:size]:
            return None
        return PassedOutcome(self.id, self.shared, self.score, self.packed + other.packed[size:])

    @property
    def case(self) -> RowCase:
        """The case."""
        sha256, line = _HEAD.unpack_from(self.packed)
        it = self.shared
        described = it.trials, it.require, it.stop_when, it.tags, it.arm, it.threshold
        return RowCase(self.id, it.suite, sha256.hex(), it.path, line, *described)

    @property
    def suite(self) -> str:
        """The eval file."""
        return self.shared.suite

    @property
    def target(self) -> str:
        """The name of the target that answers."""
        return self.shared.target

    @property
    def key(self) -> CaseKey:
        """Suite, id and target, unique in a run."""
        return self.shared.suite, self.id, self.shared.target

    @property
    def line(self) -> int:
        """The first line of the case."""
        line: int = _HEAD.unpack_from(self.packed)[1]
        return line

    @property
    def ran(self) -> int:
        """Number of trials that ran."""
        return (len(self.packed) - _HEAD.size) // _TRIAL.size

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the trials."""
        return [number for number, *_ in self._records()]

    @property
    def passed(self) -> int:
        """Trials that passed: all of them."""
        return self.ran

    @property
    def trials(self) -> tuple[TrialOutcome, ...]:
        """The trials, by number."""
        return tuple(map(_unpacked, sorted(self._records(), key=itemgetter(0))))

    @property
    def graded(self) -> tuple[TrialOutcome, ...]:
        """Trials with a verdict: all of them."""
        return self.trials

    @property
    def total_ms(self) -> int:
        """How long all its answers took."""
        return sum(self._durations_ms)

    @property
    def duration_s(self) -> float:
        """How long its slowest answer took."""
        return max(self._durations_ms) / 1000

    @property
    def _durations_ms(self) -> list[int]:
        return [duration_ms for _, _, duration_ms, *_ in self._records()]

    def _records(self) -> Iterator[_Record]:
        return _TRIAL.iter_unpack(self.packed[_HEAD.size :])

    @property
    def in_full(self) -> FullOutcome:
        """The same outcome, which may be changed."""
        return FullOutcome(self.case, self.target, self.verdict, self.score, self.trials)


def _unpacked(record: _Record) -> TrialOutcome:
    number, score, duration_ms, counted, cost_usd, is_cached = record
    return TrialOutcome(
        number,
        "pass",
        same_score(score),
        "",
        duration_ms,
        cost_usd=None if cost_usd < 0 else cost_usd,
        tokens=counted - 1 if counted else None,
        is_cached=is_cached,
    )


CaseOutcome = FullOutcome | PassedOutcome
"""The outcome of a case."""


def keys_of(outcomes: Iterable[CaseOutcome]) -> list[CaseKey]:
    """Return the keys of cases."""
    return [outcome.key for outcome in outcomes]


def in_matrix_of(outcomes: Sequence[CaseOutcome]) -> AbstractSet[tuple[str, str]]:
    """Return suite and id of the cases that several targets answer."""
    if len({outcome.target for outcome in outcomes}) < 2:
        return frozenset()
    return in_matrix(keys_of(outcomes))


def threshold_of(outcome: CaseOutcome) -> float | None:
    """Return the minimum score to pass, if its rows or its baseline have it."""
    return outcome.case.threshold if isinstance(outcome.case, RowCase) else None
