"""`type: is_json`: 1 when the answer, as it is, is JSON, else 0."""

from __future__ import annotations

from agentv_ci.contracts.evaluators import IsJsonEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.evaluators.structured import unfenced
from agentv_ci.evaluate.submission import Submission
from agentv_ci.outside import read_json


class IsJson:
    """See Evaluator."""

    def __init__(self, settings: IsJsonEvaluator) -> None:
        self._settings = settings

    async def evaluate(self, submission: Submission) -> Score:
        """Parse, as strictly as a program that gets the answer would."""
        answer = submission.answer
        try:
            read_json(answer, strict=True)
        except ValueError as error:
            reason = "it stands in a code fence" if unfenced(answer) != answer else str(error)
            return Score(0.0, misses=(f"not JSON: {reason}",))
        return Score(1.0, hits=("is JSON",))
