"""Add up tokens, costs and evaluator results, independent of the order of rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from msgspec import Struct, field

from agentv_ci.contracts.report import EvaluatorFigures
from agentv_ci.contracts.results import PRECISION, EvaluatorResult, ResultRow, Usage, sum_of_known

PARTS = 10**12
"""Amounts are summed as integer parts, so that the order does not matter."""


class Spending(Struct):
    """Tokens and costs of answers and judges."""

    usage: Usage = field(default_factory=Usage)
    judge_usage: Usage = field(default_factory=Usage)
    answers: int | None = None
    """In parts of a dollar; None when unknown."""
    judges: int | None = None

    @property
    def cost_usd(self) -> float | None:
        """Known cost of both; None when unknown."""
        return dollars(sum_of_known(self.answers, self.judges))

    @property
    def all_usage(self) -> Usage:
        """Tokens of both."""
        return self.usage.plus(self.judge_usage)

    def count(self, row: ResultRow) -> None:
        """Add the spending of a row."""
        self._add(row.usage, row.judge_usage, parts(row.cost_usd), parts(row.judge_cost_usd))

    def add(self, more: Spending) -> None:
        """Add other spending."""
        self._add(more.usage, more.judge_usage, more.answers, more.judges)

    def _add(self, usage: Usage | None, judge_usage: Usage | None, answers: int | None, judges: int | None) -> None:
        self.usage = self.usage.plus(usage)
        self.judge_usage = self.judge_usage.plus(judge_usage)
        self.answers = sum_of_known(self.answers, answers)
        self.judges = sum_of_known(self.judges, judges)


def sum_of(spent: Iterable[Spending]) -> Spending:
    """Return the total of several spendings."""
    total = Spending()
    for each in spent:
        total.add(each)
    return total


class EvaluatorTally:
    """Counts evaluator results by name and type."""

    def __init__(self) -> None:
        self._counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)

    def add(self, results: Iterable[EvaluatorResult]) -> None:
        """Add the evaluator results of a row, except comparisons of arms; members of composites are not counted."""
        for each in (result for result in results if not result.compares_arms):
            counts = self._counts[each.name, each.type]
            counts[each.status] += 1
            if each.status == "ok":
                counts["passed"] += each.verdict == "pass"
                counts["score"] += parts(each.score) or 0

    def figures(self) -> tuple[EvaluatorFigures, ...]:
        """Return the figures, sorted by name."""
        return tuple(
            EvaluatorFigures(
                name=name,
                type=kind,
                scored=counts["ok"],
                passed=counts["passed"],
                errors=counts["error"],
                skipped=counts["skipped"],
                mean=round(counts["score"] / PARTS / counts["ok"], PRECISION) if counts["ok"] else None,
            )
            for (name, kind), counts in sorted(self._counts.items())
        )


def parts(amount: float | None) -> int | None:
    """Return an amount as integer parts."""
    return None if amount is None else round(amount * PARTS)


def dollars(sum_of_parts: int | None) -> float | None:
    """Return a sum of parts as an amount."""
    return None if sum_of_parts is None else sum_of_parts / PARTS
