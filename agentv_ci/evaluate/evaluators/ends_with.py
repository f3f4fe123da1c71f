"""`type: ends_with`: 1 when the answer ends with a text, else 0."""

from __future__ import annotations

from agentv_ci.contracts.evaluators import EndsWithEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.matching import comparable
from agentv_ci.evaluate.submission import Submission


class EndsWith:
    """See Evaluator."""

    def __init__(self, settings: EndsWithEvaluator) -> None:
        self._settings = settings

    async def evaluate(self, submission: Submission) -> Score:
        """Look at the end."""
        value = self._settings.value
        if comparable(submission.answer, self._settings).endswith(comparable(value, self._settings)):
            return Score(1.0, hits=(f"ends with '{value}'",))
        return Score(0.0, misses=(f"ends with '{submission.answer[-len(value) :]}', not '{value}'",))
