"""`type: tool_calls`: 1 when tools were called no more often than they may, else 0."""

from __future__ import annotations

from agentv_ci.contracts.evaluators import ToolCallsEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.submission import Submission


class ToolCalls:
    """See Evaluator."""

    def __init__(self, settings: ToolCallsEvaluator) -> None:
        self._settings = settings

    async def evaluate(self, submission: Submission) -> Score:
        """Count the calls."""
        if not submission.response.has_trace:
            return Score(unmeasured="its tool calls")
        number = len(submission.response.calls)
        said = f"{number} tool {'call' if number == 1 else 'calls'}, at most {self._settings.max}"
        return Score(1.0, hits=(said,)) if number <= self._settings.max else Score(0.0, misses=(said,))
