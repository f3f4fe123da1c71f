"""`type: llm_judge`, `rubric`: a model scores, freely or by a list of criteria."""

from __future__ import annotations

from msgspec.structs import replace

from agentv_ci.contracts.exchange import JudgeQuestion, Score
from agentv_ci.contracts.plan import PlanLlmJudgeEvaluator, PlanRubricEvaluator
from agentv_ci.evaluate.judging import checks_question, judge_score, prompt_text, score_question
from agentv_ci.evaluate.replies import read_checks, read_score
from agentv_ci.evaluate.submission import EvaluatorServices, Submission


async def llm_judge(settings: PlanLlmJudgeEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """Ask for a score, or which of `rubrics` are met."""
    custom = prompt_text(settings.prompt, submission)
    if settings.rubrics:
        question = checks_question(submission, settings.rubrics, custom)
    else:
        question = score_question(submission, custom)
    bounded = replace(question, temperature=settings.temperature, max_output_tokens=settings.max_output_tokens)
    return await _judged(settings, bounded, submission, services)


async def rubric(settings: PlanRubricEvaluator, submission: Submission, services: EvaluatorServices) -> Score:
    """Ask which criteria are met."""
    return await _judged(settings, checks_question(submission, settings.rubrics), submission, services)


async def _judged(
    settings: PlanLlmJudgeEvaluator | PlanRubricEvaluator,
    question: JudgeQuestion,
    submission: Submission,
    services: EvaluatorServices,
) -> Score:
    rubrics = settings.rubrics
    return await judge_score(
        services,
        settings.target,
        question,
        lambda reply: read_checks(reply, rubrics) if rubrics else read_score(reply),
        retries=settings.judge_retries,
        label=submission.label(settings),
    )
