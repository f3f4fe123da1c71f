"""`type: contains`: 1 when the answer contains a text, else 0."""

from __future__ import annotations

from agentv_ci.contracts.evaluators import ContainsEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.submission import Submission


class Contains:
    """See Evaluator."""

    def __init__(self, settings: ContainsEvaluator) -> None:
        self._settings = settings

    async def evaluate(self, submission: Submission) -> Score:
        """Look for the text."""
        value, answer = self._settings.value, submission.answer
        if not self._settings.case_sensitive:
            value, answer = value.casefold(), answer.casefold()
        if value in answer:
            return Score(1.0, hits=(f"contains '{self._settings.value}'",))
        return Score(0.0, misses=(f"does not contain '{self._settings.value}'",))
