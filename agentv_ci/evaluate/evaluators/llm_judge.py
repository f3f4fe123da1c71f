"""`type: llm_judge`, `rubric`: a model scores, freely or by a list of criteria."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from agentv_ci.contracts.exchange import JudgeQuestion, Score
from agentv_ci.contracts.plan_evaluators import (
    PlanLlmJudgeEvaluator,
    PlanRubric,
    PlanRubricEvaluator,
)
from agentv_ci.evaluate.judging import checks_question, judge_score, prompt_text, score_question
from agentv_ci.evaluate.replies import UNIT_SCALE, Read, read_checks, read_score
from agentv_ci.evaluate.submission import EvaluatorServices, Submission


async def llm_judge(
    settings: PlanLlmJudgeEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Ask for a score, or which of `rubrics` are met."""
    custom = prompt_text(settings.prompt, submission)
    if settings.rubrics:
        question, read = (
            checks_question(submission, settings.rubrics, custom),
            _checks_reader(settings.rubrics),
        )
    else:
        question = score_question(submission, custom, settings.scale)
        read = partial(read_score, scale=settings.scale or UNIT_SCALE)
    bounded = replace(
        question, temperature=settings.temperature, max_output_tokens=settings.max_output_tokens
    )
    return await _judged(settings, bounded, read, submission, services)


async def rubric(
    settings: PlanRubricEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Ask which criteria are met."""
    question = checks_question(submission, settings.rubrics)
    return await _judged(settings, question, _checks_reader(settings.rubrics), submission, services)


def _checks_reader(rubrics: Sequence[PlanRubric]) -> Read:
    return partial(read_checks, rubrics=rubrics)


async def _judged(
    settings: PlanLlmJudgeEvaluator | PlanRubricEvaluator,
    question: JudgeQuestion,
    read: Read,
    submission: Submission,
    services: EvaluatorServices,
) -> Score:
    return await judge_score(
        services,
        settings.target,
        question,
        read,
        retries=settings.judge_retries,
        label=submission.label(settings),
    )
