"""`type: contains_any`: 1 when the answer contains one of several texts, else 0."""

from __future__ import annotations

from agentv_ci.contracts.evaluators import ContainsAnyEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.matching import comparable
from agentv_ci.evaluate.submission import Submission


class ContainsAny:
    """See Evaluator."""

    def __init__(self, settings: ContainsAnyEvaluator) -> None:
        self._settings = settings

    async def evaluate(self, submission: Submission) -> Score:
        """Look for the texts."""
        answer = comparable(submission.answer, self._settings)
        values = self._settings.value
        found = [value for value in values if comparable(value, self._settings) in answer]
        if found:
            return Score(1.0, hits=tuple(f"contains '{value}'" for value in found))
        return Score(0.0, misses=(f"contains none of {', '.join(map(repr, values))}",))
