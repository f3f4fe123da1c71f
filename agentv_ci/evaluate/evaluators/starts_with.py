"""`type: starts_with`: 1 when the answer begins with a text, else 0."""

from __future__ import annotations

from agentv_ci.contracts.evaluators import StartsWithEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.matching import comparable
from agentv_ci.evaluate.submission import Submission


class StartsWith:
    """See Evaluator."""

    def __init__(self, settings: StartsWithEvaluator) -> None:
        self._settings = settings

    async def evaluate(self, submission: Submission) -> Score:
        """Look at the beginning."""
        value = self._settings.value
        if comparable(submission.answer, self._settings).startswith(comparable(value, self._settings)):
            return Score(1.0, hits=(f"starts with '{value}'",))
        return Score(0.0, misses=(f"starts with '{submission.answer[: len(value)]}', not '{value}'",))
