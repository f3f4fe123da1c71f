"""`type: llm_judge`, `rubric`: a model scores, freely or by a list of criteria.

The answer is data: it is put in once, between marks that it cannot know, and only the judge's own reply is read.
"""

from __future__ import annotations

from dataclasses import replace

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import JudgeQuestion, Score
from agentv_ci.contracts.plan import PlanLlmJudgeEvaluator, PlanRubricEvaluator
from agentv_ci.evaluate.judging import judge_score, read_checks
from agentv_ci.evaluate.prompts import checks_question, prompt_text, score_question
from agentv_ci.evaluate.replies import MOST_FINDINGS, read_score
from agentv_ci.evaluate.services import EvaluatorServices
from agentv_ci.evaluate.submission import Submission


async def llm_judge(settings: PlanLlmJudgeEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """Ask for a score."""
    return await judge_score(
        services,
        settings.target,
        replace(
            _question(settings, submission),
            temperature=settings.temperature,
            max_output_tokens=settings.max_output_tokens,
        ),
        lambda reply: _score_in(reply, settings),
        retries=settings.judge_retries,
        label=submission.label(settings),
    )


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


def _question(settings: PlanLlmJudgeEvaluator, submission: Submission) -> JudgeQuestion:
    custom = prompt_text(settings.prompt, submission)
    if settings.rubrics:
        return checks_question(submission, settings.rubrics, custom)
    return score_question(submission, custom)


def _score_in(reply: JsonObject, settings: PlanLlmJudgeEvaluator) -> Score | None:
    if settings.rubrics:
        return read_checks(reply, settings.rubrics)
    return read_score(reply, most=MOST_FINDINGS)
