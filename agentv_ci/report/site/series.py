"""The figures of a ledger's runs: of all cases, and of those of each suite and target."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from msgspec import Struct

from agentv_ci.analysis.statistics.inference import rate_interval
from agentv_ci.base.mappings import present
from agentv_ci.contracts.ledger import CaseLine, LedgerRun
from agentv_ci.contracts.results import PRECISION

CONFIDENCE = 0.95
"""Of the intervals of pass rates."""


class Point(Struct, frozen=True):
    """Cases of one run."""

    cases: int
    passed: int
    graded: int
    low: float
    """Of the interval of the pass rate (Wilson): these cases as a sample of those that could be
    asked.
    """
    high: float
    score: float | None
    """Mean score of the graded cases."""
    cost_usd: float | None
    """Known cost of all; None if none is known."""
    duration_ms: float | None
    """Median duration of the cases; None if none was measured."""

    @property
    def errored(self) -> int:
        """Cases that are not graded."""
        return self.cases - self.graded

    @property
    def rate(self) -> float | None:
        """The share of graded cases that passed."""
        if self.graded:
            return self.passed / self.graded
        return None


class Series(Struct, frozen=True):
    """The figures of some cases in every run."""

    name: str
    points: tuple[Point | None, ...]
    """One for each run, the oldest first; None if the run had none of the cases."""

    @property
    def last(self) -> Point:
        """The figures of the newest run that had any of the cases."""
        return next(present(reversed(self.points)))


def overall(runs: Sequence[LedgerRun]) -> Series:
    """Return the figures of all cases."""
    return Series("All cases", tuple(_point(run.cases) for run in runs))


def by_suite(runs: Sequence[LedgerRun]) -> list[Series]:
    """Return the figures of each suite, sorted by name."""
    return _grouped(runs, lambda case: case.suite)


def by_target(runs: Sequence[LedgerRun]) -> list[Series]:
    """Return the figures of each target, sorted by name."""
    return _grouped(runs, lambda case: case.target)


def _grouped(runs: Sequence[LedgerRun], group: Callable[[CaseLine], str]) -> list[Series]:
    points: dict[str, list[Point | None]] = {}
    for number, run in enumerate(runs):
        members: dict[str, list[CaseLine]] = {}
        for case in run.cases:
            members.setdefault(group(case), []).append(case)
        for name, cases in members.items():
            points.setdefault(name, [None] * len(runs))[number] = _point(cases)
    return [Series(name, tuple(points[name])) for name in sorted(points)]


def _point(cases: Iterable[CaseLine]) -> Point | None:
    cases = tuple(cases)
    if not cases:
        return None
    scores = [case.score for case in cases if case.score is not None]
    passed = sum(case.verdict == "pass" for case in cases)
    graded = sum(case.graded > 0 for case in cases)
    costs = [case.cost_usd for case in cases if case.cost_usd is not None]
    durations = [case.duration_ms for case in cases if case.duration_ms is not None]
    low, high = rate_interval(passed, graded, CONFIDENCE)
    return Point(
        cases=len(cases),
        passed=passed,
        graded=graded,
        low=low,
        high=high,
        score=round(math.fsum(scores) / len(scores), PRECISION) if scores else None,
        cost_usd=round(math.fsum(costs), PRECISION) if costs else None,
        duration_ms=median(durations) if durations else None,
    )
