"""Add up tokens, costs and evaluator results, independent of the order of rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import starmap
from operator import attrgetter, itemgetter

from msgspec import Struct

from agentv_ci.contracts.report import EvaluatorFigures
from agentv_ci.contracts.results import PRECISION, EvaluatorResult, ResultRow, Usage, sum_of_known

PARTS = 10**12
"""Amounts are summed as integer parts, so that the order does not matter."""
MOST_USD = 1e15
"""Of a row: more is not an amount, and its parts could be no number."""

TokenCounts = tuple[int | None, ...]
"""Sums of the fields of `Usage`; adding them up takes a fraction of the time that objects take."""

_counts_of = attrgetter(*Usage.model_fields)
NO_TOKENS: TokenCounts = (None,) * len(Usage.model_fields)


class Spending(Struct):
    """Tokens and costs of answers and judges."""

    usage: TokenCounts = NO_TOKENS
    judge_usage: TokenCounts = NO_TOKENS
    answers: int | None = None
    """In parts of a dollar; None when unknown."""
    judges: int | None = None
    is_partial: bool = False
    """Whether the cost of something that used tokens is unknown."""

    @property
    def cost_usd(self) -> float | None:
        """Known cost of both; None when unknown."""
        return dollars(sum_of_known(self.answers, self.judges))

    @property
    def all_usage(self) -> Usage:
        """Tokens of both."""
        return recorded(plus(self.usage, self.judge_usage))

    def count(self, row: ResultRow) -> None:
        """Add the spending of a row."""
        judge_usage = NO_TOKENS if row.judge_usage is None else _counts_of(row.judge_usage)
        answers, judges = parts(row.cost_usd), parts(row.judge_cost_usd)
        self._add(_counts_of(row.usage), judge_usage, answers, judges)
        self.is_partial |= lacks_cost(row)

    def add(self, more: Spending) -> None:
        """Add other spending."""
        self._add(more.usage, more.judge_usage, more.answers, more.judges)
        self.is_partial |= more.is_partial

    def _add(
        self, usage: TokenCounts, judge_usage: TokenCounts, answers: int | None, judges: int | None
    ) -> None:
        self.usage = plus(self.usage, usage)
        if judge_usage != NO_TOKENS:
            self.judge_usage = plus(self.judge_usage, judge_usage)
        self.answers = sum_of_known(self.answers, answers)
        self.judges = sum_of_known(self.judges, judges)


def lacks_cost(row: ResultRow) -> bool:
    """Whether the cost of an answer, a judge or a failed request of a row is unknown."""
    has_answer = row.verdict != "skipped" and row.error_kind in (None, "evaluator")
    if has_answer and row.cost_usd is None:
        return True
    if row.judge_usage is not None and row.judge_cost_usd is None:
        return True
    return any(expense.cost_usd is None for expense in row.expenses or ())


def plus(one: TokenCounts, two: TokenCounts) -> TokenCounts:
    """Return the sum of both; None where both are unknown."""
    return tuple(map(sum_of_known, one, two))


def recorded(counts: TokenCounts) -> Usage:
    """Return token counts as reports have them."""
    return Usage(**dict(zip(Usage.model_fields, counts, strict=True)))


def sum_of(spent: Iterable[Spending]) -> Spending:
    """Return the total of several spendings."""
    total = Spending()
    for spending in spent:
        total.add(spending)
    return total


class _Scores(Struct):
    """The results of an evaluator."""

    scored: int = 0
    passed: int = 0
    errors: int = 0
    skipped: int = 0
    total: int = 0
    """In parts."""

    def add(self, result: EvaluatorResult) -> None:
        match result.status:
            case "ok":
                self.scored += 1
                self.passed += result.verdict == "pass"
                self.total += parts(result.score) or 0
            case "error":
                self.errors += 1
            case "skipped":
                self.skipped += 1


class EvaluatorTally:
    """Counts evaluator results by name and type."""

    def __init__(self) -> None:
        self._scores: defaultdict[tuple[str, str], _Scores] = defaultdict(_Scores)
        self.broken_contracts = 0
        """Results of judges whose replies contradicted themselves or left their scale."""
        self.compared_masked = 0
        """Rows whose answer was compared with a secret masked in it."""

    def add(self, results: Iterable[EvaluatorResult]) -> None:
        """Add the evaluator results of a row, except comparisons of arms.

        Members of composites are not counted.
        """
        is_masked = False
        for result in results:
            is_masked |= result.compared_masked
            self.broken_contracts += result.breaks_contract
            if not result.compares_arms:
                self._scores[result.name, result.type].add(result)
        self.compared_masked += is_masked

    def figures(self) -> tuple[EvaluatorFigures, ...]:
        """Return the figures, sorted by name."""
        by_name = sorted(self._scores.items(), key=itemgetter(0))
        return tuple(starmap(_figures, by_name))


def _figures(evaluator: tuple[str, str], known: _Scores) -> EvaluatorFigures:
    name, kind = evaluator
    return EvaluatorFigures(
        name=name,
        type=kind,
        scored=known.scored,
        passed=known.passed,
        errors=known.errors,
        skipped=known.skipped,
        mean=round(known.total / PARTS / known.scored, PRECISION) if known.scored else None,
    )


def parts(amount: float | None) -> int | None:
    """Return an amount as integer parts."""
    if amount is None:
        return None
    return round(min(amount, MOST_USD) * PARTS)


def dollars(sum_of_parts: int | None) -> float | None:
    """Return a sum of parts as an amount."""
    if sum_of_parts is None:
        return None
    return sum_of_parts / PARTS
