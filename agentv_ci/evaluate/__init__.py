"""Stage 5: an answer becomes a grade."""

from __future__ import annotations

from dataclasses import replace

from agentv_ci.contracts.exchange import Grade
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.evaluate.concurrency import side_by_side
from agentv_ci.evaluate.evaluators import Tools, score_one
from agentv_ci.evaluate.scoring import combine
from agentv_ci.evaluate.submission import Submission

__all__ = ["evaluate"]


async def evaluate(case: PlanCase, submission: Submission, tools: Tools) -> Grade:
    """Score an answer with all evaluators of its case, side by side.

    Never raises for an evaluator that breaks: that one's error is part of the grade, the others keep their scores.
    """
    assessments = await side_by_side(case.evaluators, lambda each: score_one(each, submission, tools))
    grade = combine(assessments, case.threshold)
    return replace(grade, judge_usage=tools.judge_usage, judge_cost_usd=tools.judge_cost_usd, masked=tools.masked)
