"""What a run has cost so far, and whether it may continue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from agentv_ci.base.prices import unpriced_name
from agentv_ci.contracts.exchange import Response, Warn
from agentv_ci.contracts.plan import PlanSuite
from agentv_ci.contracts.results import Expense
from agentv_ci.contracts.targets import Target
from agentv_ci.results.resume import EarlierRun


class Budget:
    """Adds up the cost of answers and judges as they come."""

    def __init__(
        self, most_usd: float | None, suites: Mapping[str, PlanSuite], shards: int, warn: Warn
    ) -> None:
        self.spent_usd = 0.0
        """The total of all suites."""
        self.unpriced: dict[str, None] = {}
        """Models without a known price, in the order of their answers."""
        self._most_usd = None if most_usd is None else most_usd / shards
        self._most_by_suite = {
            path: most / shards
            for path, suite in suites.items()
            if (most := suite.gate.max_cost_usd) is not None
        }
        self._spent_by_suite: Counter[str] = Counter()
        self._is_bounded = most_usd is not None or bool(self._most_by_suite)
        self._warn = warn

    def add(self, cost_usd: float, suite: str) -> None:
        """Count what was spent on a suite."""
        self.spent_usd += cost_usd
        self._spent_by_suite[suite] += cost_usd  # type: ignore[assignment]  # dollars

    def add_earlier(self, finished: EarlierRun) -> None:
        """Count what an earlier run has spent."""
        for suite, cost_usd in finished.cost_usd.items():
            self.add(cost_usd, suite)
        for model in finished.unpriced_models:
            self.miss_price(model)

    def answered(self, target: Target, response: Response, suite: str) -> None:
        """Count what an answer and failed requests for it cost; stored answers cost nothing."""
        self.failed(target, response.expenses, suite)
        if not response.cached:
            self._count(target, response, suite)

    def failed(self, target: Target, expenses: Iterable[Expense], suite: str) -> None:
        """Count what failed requests cost."""
        for expense in expenses:
            self._count(target, expense, suite)

    def _count(self, target: Target, used: Response | Expense, suite: str) -> None:
        if used.cost_usd is not None:
            self.add(used.cost_usd, suite)
        elif target.charges:
            self.miss_price(unpriced_name(target, used.model, used.usage))

    def miss_price(self, model: str) -> None:
        """Note a model without a known price."""
        if model in self.unpriced:
            return
        self.unpriced[model] = None
        if self._is_bounded:
            self._warn(
                f"the cost of '{model}' is unknown, so the budget cannot be enforced; "
                "set its price in 'prices'"
            )

    def is_exhausted(self, suite: str) -> bool:
        """Whether the budget of a suite or of the run is used up."""
        return _is_used_up(
            self._spent_by_suite[suite], self._most_by_suite.get(suite)
        ) or _is_used_up(self.spent_usd, self._most_usd)


def _is_used_up(spent_usd: float, most_usd: float | None) -> bool:
    # A budget of 0 allows a run that costs nothing.
    return most_usd is not None and spent_usd > 0 and spent_usd >= most_usd
