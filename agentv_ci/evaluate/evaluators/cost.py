"""`type: cost`: 1 when the answer cost no more than it may, else 0."""

from __future__ import annotations

from decimal import Decimal

from agentv_ci.contracts.evaluators import CostEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.results import PRECISION
from agentv_ci.evaluate.submission import Submission


class Cost:
    """See Evaluator."""

    def __init__(self, settings: CostEvaluator) -> None:
        self._settings = settings

    async def evaluate(self, submission: Submission) -> Score:
        """Compare the cost of the answer; judges are not in it."""
        cost_usd = submission.response.cost_usd
        if cost_usd is None:
            return Score(unmeasured="a cost: neither its own nor tokens of a model with a known price")
        cost, most = (Decimal(str(round(each, PRECISION))).normalize() for each in (cost_usd, self._settings.max_usd))
        said = f"${cost:f}, at most ${most:f}"
        return Score(1.0, hits=(said,)) if cost <= most else Score(0.0, misses=(said,))
