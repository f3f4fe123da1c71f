"""`type: contains_all`: the share of several texts that the answer contains."""

from __future__ import annotations

from agentv_ci.contracts.evaluators import ContainsAllEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.matching import comparable
from agentv_ci.evaluate.submission import Submission


class ContainsAll:
    """See Evaluator."""

    def __init__(self, settings: ContainsAllEvaluator) -> None:
        self._settings = settings

    async def evaluate(self, submission: Submission) -> Score:
        """Look for the texts."""
        answer = comparable(submission.answer, self._settings)
        values = self._settings.value
        found = [comparable(value, self._settings) in answer for value in values]
        return Score(
            sum(found) / len(values),
            hits=tuple(f"contains '{value}'" for value, is_there in zip(values, found, strict=True) if is_there),
            misses=tuple(
                f"does not contain '{value}'" for value, is_there in zip(values, found, strict=True) if not is_there
            ),
        )
