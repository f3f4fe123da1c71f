"""Let a judge choose between the answers of two arms of an experiment, shown in both orders.

An answer counts as better when the judge prefers it in both orders: L. Zheng et al. (2023), Judging LLM-as-a-judge with
MT-Bench and Chatbot Arena.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from agentv_ci.contracts.exchange import Choice, Preference, Score
from agentv_ci.contracts.plan import PlanPairwiseJudgeEvaluator
from agentv_ci.evaluate.judging import choice_question, judge_score
from agentv_ci.evaluate.replies import read_choice
from agentv_ci.evaluate.submission import EvaluatorServices, Submission


async def prefer(
    settings: PlanPairwiseJudgeEvaluator, base: Submission, head: Submission, services: EvaluatorServices
) -> Preference:
    """Ask which answer to the same case is better, in both orders at once; does not raise when the judge fails."""
    base_first, head_first = await asyncio.gather(
        _choose(settings, base, head, services), _choose(settings, head, base, services)
    )
    errors = [each.error for each in (base_first, head_first) if each.error is not None]
    if errors:
        return Preference(error=errors[0])
    return Preference(
        base_first=_choice(base_first),
        head_first=_choice(head_first),
        reasoning=" | ".join(each.reasoning for each in (base_first, head_first) if each.reasoning),
        judge=base_first.judge,
    )


async def _choose(
    settings: PlanPairwiseJudgeEvaluator, first: Submission, second: Submission, services: EvaluatorServices
) -> Score:
    """Return 1 for the first answer, 0 for the second, and a half for neither."""
    question = choice_question(first, second.answer)
    bounded = replace(question, temperature=settings.temperature, max_output_tokens=settings.max_output_tokens)
    return await judge_score(
        services, settings.target, bounded, read_choice, retries=settings.judge_retries, label=first.label(settings)
    )


def _choice(score: Score) -> Choice:
    return "first" if score.score == 1 else "second" if score.score == 0 else "tie"
