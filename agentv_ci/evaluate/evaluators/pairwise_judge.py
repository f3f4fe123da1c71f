"""`type: pairwise_judge`: a model chooses between the answers of two arms of an experiment.

It sees them in both orders, and an answer is better if it is preferred both times: L. Zheng et al.
(2023), Judging LLM-as-a-judge with MT-Bench and Chatbot Arena.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping
from itertools import chain

from msgspec.structs import replace

from agentv_ci.base.canonical import digest_of
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan_evaluators import PlanPairwiseJudgeEvaluator
from agentv_ci.contracts.results import Choice, Outcome, Preference
from agentv_ci.evaluate.judging import choice_question, judge_score
from agentv_ci.evaluate.replies import CHOICES, read_choice
from agentv_ci.evaluate.submission import EvaluatorServices, OtherArms, Submission

COMPARED_LATER = "compared in the row of the arm that answers later"
SCORES: Mapping[Outcome, float] = {"win": 1.0, "tie": 0.5, "loss": 0.0}


async def pairwise_judge(
    settings: PlanPairwiseJudgeEvaluator, submission: Submission, services: EvaluatorServices
) -> Score:
    """Compare an answer with those that are known of other arms: so each pair is compared once."""
    other_arms = submission.other_arms
    if isinstance(other_arms, str):
        return Score(error=other_arms)
    if other_arms is None:
        return Score(skipped=COMPARED_LATER)
    arms = other_arms.answers
    compared = [_compared(settings, submission, other_arms, arm, services) for arm in arms]
    scores = await asyncio.gather(*compared)
    return replace(
        scores[0],
        score=math.fsum(score.score for score in scores) / len(scores),
        reasoning=" | ".join(score.reasoning for score in scores),
        error=" | ".join(score.error for score in scores if score.error is not None) or None,
        raw_response=_replies(scores) or None,
        broken_contract=_broken_contracts(scores),
        # Those that worked, even if others did not.
        preferences=tuple(chain.from_iterable(score.preferences for score in scores)),
    )


async def _compared(
    settings: PlanPairwiseJudgeEvaluator,
    submission: Submission,
    other_arms: OtherArms,
    arm: str,
    services: EvaluatorServices,
) -> Score:
    """Return what the judge says of an answer and that of another arm."""

    async def choose(first: str, second: str) -> Score:
        if first == second:
            return Score(CHOICES["tie"], reasoning="the answers are equal")
        question = choice_question(submission, other_arms.request, first, second)
        bounded = replace(
            question, temperature=settings.temperature, max_output_tokens=settings.max_output_tokens
        )
        label = submission.label(settings)
        return await judge_score(
            services,
            settings.target,
            bounded,
            read_choice,
            retries=settings.judge_retries,
            label=label,
        )

    own, other = submission.answer, other_arms.answers[arm]
    both = await asyncio.gather(choose(own, other), choose(other, own))
    replies = _replies(both)
    broken = next((score.error for score in both if score.error is not None), None)
    if broken is not None:
        return replace(both[0], error=f"against '{arm}': {broken}", raw_response=replies)
    preference = Preference(
        arm=arm,
        own_answer=digest_of(own),
        answer=digest_of(other),
        own_first=_choice(both[0]),
        other_first=_choice(both[1]),
    )
    reasons = " / ".join(dict.fromkeys(score.reasoning for score in both if score.reasoning))
    reasoning = f"{preference.outcome} against '{arm}'" + (f": {reasons}" if reasons else "")
    return replace(
        both[0],
        score=SCORES[preference.outcome],
        reasoning=reasoning,
        raw_response=replies,
        preferences=(preference,),
        broken_contract=_broken_contracts(both),
    )


def _replies(scores: Iterable[Score]) -> str:
    return "\n".join(score.raw_response for score in scores if score.raw_response)


def _broken_contracts(scores: Iterable[Score]) -> str | None:
    """Return how replies broke their contract, each way once."""
    return (
        " | ".join(
            dict.fromkeys(score.broken_contract for score in scores if score.broken_contract)
        )
        or None
    )


def _choice(score: Score) -> Choice:
    return next(choice for choice, value in CHOICES.items() if value == score.score)
