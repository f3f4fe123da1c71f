"""Stage 5: an answer becomes a grade."""

from __future__ import annotations

import asyncio

from agentv_ci.contracts.exchange import Grade, Score
from agentv_ci.contracts.plan import PlanCase, PlanEvaluator
from agentv_ci.evaluate.evaluators import Tools, open_evaluator
from agentv_ci.evaluate.scoring import combine, judge_one
from agentv_ci.evaluate.submission import Submission

__all__ = ["evaluate"]


async def evaluate(case: PlanCase, submission: Submission, tools: Tools) -> Grade:
    """Score an answer with all evaluators of its case, side by side.

    Never raises for an evaluator that breaks: that one's error is part of the grade, the others keep their scores.
    """
    scores = await asyncio.gather(*(_score(each, submission, tools) for each in case.evaluators))
    outcomes = [judge_one(each, score, case.threshold) for each, score in zip(case.evaluators, scores, strict=True)]
    return combine(outcomes, case.threshold, judge_usage=tools.judge_usage)


async def _score(evaluator: PlanEvaluator, submission: Submission, tools: Tools) -> Score:
    try:
        return await open_evaluator(evaluator, tools).evaluate(submission)
    except Exception as error:  # noqa: BLE001  # whatever breaks one evaluator, the others have scored
        return Score(error=f"it broke: {type(error).__name__}: {error}")
