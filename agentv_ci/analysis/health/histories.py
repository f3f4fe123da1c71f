"""The history of each case: what it did in the runs since it was changed last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.ledger import CaseLine, LedgerRun, RunLine

MIN_RUNS = 20
"""Runs that a case needs, since it was changed last, to be judged."""
GONE_AFTER_DAYS = 14
"""Days before the newest run within which a case must have run; others are gone."""


class CaseRun(Struct, frozen=True, gc=False):
    """A case in a run."""

    run: RunLine
    case: CaseLine


class CaseHistory(Struct, frozen=True):
    """The runs of a case with its present digest, the oldest first."""

    key: CaseKey
    runs: tuple[CaseRun, ...]

    @property
    def answered(self) -> tuple[CaseRun, ...]:
        """Runs with a new answer; a recorded one says nothing of who answers."""
        return tuple(run for run in self.runs if not run.case.cached)

    @property
    def graded(self) -> tuple[CaseRun, ...]:
        """Runs with a score of a new answer."""
        return tuple(run for run in self.answered if run.case.graded)


def trials_of(runs: Iterable[CaseRun]) -> tuple[int, int]:
    """Return how many trials passed, and how many are graded."""
    passed, graded = 0, 0
    for run in runs:
        passed += run.case.passed
        graded += run.case.graded
    return passed, graded


def pass_rate(run: CaseRun) -> float:
    """Return the share of the graded trials of a run that passed."""
    return run.case.passed / run.case.graded


def histories(runs: Sequence[LedgerRun]) -> list[CaseHistory]:
    """Return the history of each case that still runs, in the order of the cases' names."""
    if not runs:
        return []
    seen: defaultdict[CaseKey, list[CaseRun]] = defaultdict(list)
    for run in runs:
        for case in run.cases:
            known = seen[case.key]
            if known and known[-1].case.digest != case.digest:
                known.clear()
            known.append(CaseRun(run.head, case))
    oldest = datetime.fromisoformat(runs[-1].head.time) - timedelta(days=GONE_AFTER_DAYS)
    return [
        CaseHistory(key, tuple(own))
        for key, own in sorted(seen.items())
        if datetime.fromisoformat(own[-1].run.time) >= oldest
    ]
