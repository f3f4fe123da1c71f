"""`type: rubric`: a model checks criteria one by one."""

from __future__ import annotations

from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan import PlanRubricEvaluator
from agentv_ci.evaluate.criteria import read_checks
from agentv_ci.evaluate.judging import Judges
from agentv_ci.evaluate.prompts import checks_question
from agentv_ci.evaluate.submission import Submission


class Rubric:
    """See Evaluator."""

    def __init__(self, settings: PlanRubricEvaluator, judges: Judges) -> None:
        self._settings = settings
        self._judges = judges

    async def evaluate(self, submission: Submission) -> Score:
        """Ask which criteria are met."""
        rubrics = self._settings.rubrics
        return await self._judges.score(
            self._settings.target,
            checks_question(submission, rubrics),
            lambda reply: read_checks(reply, rubrics),
            retries=self._settings.judge_retries,
            label=f"{submission.case.id}: {self._settings.name}",
        )
