"""`type: rubric`: a model checks criteria one by one."""

from __future__ import annotations

from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan import PlanRubricEvaluator
from agentv_ci.evaluate.judging import judge_score, read_checks
from agentv_ci.evaluate.prompts import checks_question
from agentv_ci.evaluate.services import EvaluatorServices
from agentv_ci.evaluate.submission import Submission


async def rubric(settings: PlanRubricEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """Ask which criteria are met."""
    return await judge_score(
        services,
        settings.target,
        checks_question(submission, settings.rubrics),
        lambda reply: read_checks(reply, settings.rubrics),
        retries=settings.judge_retries,
        label=submission.label(settings),
    )
