"""`type: latency`: 1 when the answer came in time, else 0."""

from __future__ import annotations

from decimal import Decimal

from agentv_ci.contracts.evaluators import LatencyEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.submission import Submission


class Latency:
    """See Evaluator."""

    def __init__(self, settings: LatencyEvaluator) -> None:
        self._settings = settings

    async def evaluate(self, submission: Submission) -> Score:
        """Compare the time that the answer took in its last attempt."""
        took_ms = submission.response.duration_ms
        if took_ms is None:
            return Score(unmeasured="the time its answer took")
        said = f"{took_ms:,} ms, at most {Decimal(str(self._settings.max_ms)).normalize():,f} ms"
        return Score(1.0, hits=(said,)) if took_ms <= self._settings.max_ms else Score(0.0, misses=(said,))
