"""`type: contains`: 1 when the answer contains a text, else 0."""

from __future__ import annotations

from agentv_ci.contracts.evaluators import ContainsEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.matching import comparable
from agentv_ci.evaluate.submission import Submission


class Contains:
    """See Evaluator."""

    def __init__(self, settings: ContainsEvaluator) -> None:
        self._settings = settings

    async def evaluate(self, submission: Submission) -> Score:
        """Look for the text."""
        value = self._settings.value
        if comparable(value, self._settings) in comparable(submission.answer, self._settings):
            return Score(1.0, hits=(f"contains '{value}'",))
        return Score(0.0, misses=(f"does not contain '{value}'",))
