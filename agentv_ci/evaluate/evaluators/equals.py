"""`type: equals`: 1 when the answer is a text, but for space at both ends, else 0."""

from __future__ import annotations

from agentv_ci.contracts.evaluators import EqualsEvaluator
from agentv_ci.contracts.exchange import Score
from agentv_ci.evaluate.matching import comparable
from agentv_ci.evaluate.submission import Submission
from agentv_ci.text import shortened

MAX_QUOTED = 200


class Equals:
    """See Evaluator."""

    def __init__(self, settings: EqualsEvaluator) -> None:
        self._settings = settings

    async def evaluate(self, submission: Submission) -> Score:
        """Compare."""
        value = self._settings.value
        answer = submission.answer.strip()
        if comparable(answer, self._settings) == comparable(value.strip(), self._settings):
            return Score(1.0, hits=(f"equals '{value}'",))
        return Score(0.0, misses=(f"is '{shortened(answer, MAX_QUOTED)}', not '{value}'",))
