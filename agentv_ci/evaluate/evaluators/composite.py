"""`type: composite`: combine the scores of several evaluators into one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import assert_never

from msgspec.structs import replace

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Score
from agentv_ci.contracts.plan_evaluators import (
    PlanCodeAggregator,
    PlanCompositeEvaluator,
    PlanEvaluator,
    PlanLlmJudgeAggregator,
    PlanWeightedAverage,
)
from agentv_ci.contracts.plan_parts import json_text
from agentv_ci.contracts.results import EvaluatorResult
from agentv_ci.evaluate.judging import aggregate_question, judge_score, prompt_text
from agentv_ci.evaluate.replies import UNIT_SCALE, read_score
from agentv_ci.evaluate.scoring import Assessment, lacks_weight, settled, weighted_mean
from agentv_ci.evaluate.scripts import script_score
from agentv_ci.evaluate.submission import EvaluatorServices, Submission

JUDGE_RETRIES = 2
AGGREGATED = {"type", "score", "weight", "verdict", "hits", "misses", "reasoning"}
"""Fields of a result that aggregators read."""

Assess = Callable[
    [Sequence[PlanEvaluator], Submission, EvaluatorServices], Awaitable[list[Assessment]]
]


async def composite(
    settings: PlanCompositeEvaluator,
    submission: Submission,
    services: EvaluatorServices,
    *,
    assess: Assess,
) -> Score:
    """Score with all members concurrently, then aggregate.

    A member with an error makes the composite an error; a skipped member is ignored.
    """
    assessments = await assess(settings.evaluators, submission, services)
    members = settled(each.result for each in assessments)
    if broken := [each for each in members if each.status == "error"]:
        reasons = "; ".join(f"member '{each.name}': {each.reasoning}" for each in broken)
        return Score(error=reasons, members=members)
    weighed = [each.model_copy(update={"weight": _weight(each, settings)}) for each in members]
    if lacks_weight(weighed):
        return Score(unmeasured="what the members measure", members=members)
    scored = [each for each in weighed if each.status == "ok"]
    score = await _aggregated(settings, scored, submission, services)
    return replace(
        score, members=members, misses_required=any(each.fails_case for each in assessments)
    )


def _weight(member: EvaluatorResult, settings: PlanCompositeEvaluator) -> float:
    aggregator = settings.aggregator
    if isinstance(aggregator, PlanWeightedAverage):
        return aggregator.weights[member.name]
    return member.weight


async def _aggregated(
    settings: PlanCompositeEvaluator,
    scored: Sequence[EvaluatorResult],
    submission: Submission,
    services: EvaluatorServices,
) -> Score:
    match settings.aggregator:
        case PlanWeightedAverage():
            return Score(
                weighted_mean((each.weight, each.score) for each in scored),
                weighs_nothing=not any(each.weight for each in scored),
                hits=tuple(f"[{each.name}] {hit}" for each in scored for hit in each.hits),
                misses=tuple(f"[{each.name}] {miss}" for each in scored for miss in each.misses),
                reasoning="; ".join(
                    f"{each.name}: {each.reasoning}" for each in scored if each.reasoning
                ),
            )
        case PlanCodeAggregator() as script:
            return await script_score(
                services,
                submission.label(settings),
                script,
                {"eval_id": submission.case.id, "results": _results(scored)},
                cwd=submission.request.cwd,
                timeout_s=submission.case.timeout_seconds,
            )
        case PlanLlmJudgeAggregator() as judge:
            custom = prompt_text(judge.prompt, submission)
            return await judge_score(
                services,
                judge.target,
                aggregate_question(submission, json_text(_results(scored)), custom, judge.scale),
                partial(read_score, scale=judge.scale or UNIT_SCALE),
                retries=JUDGE_RETRIES,
                label=submission.label(settings),
            )
        case _ as other:
            assert_never(other)


def _results(scored: Sequence[EvaluatorResult]) -> JsonObject:
    """Return name → result, as aggregators read it."""
    return {each.name: _result(each) for each in scored}


def _result(result: EvaluatorResult) -> JsonObject:
    found: JsonObject = result.model_dump(mode="json", include=AGGREGATED)
    members = [each for each in result.evaluator_results or () if each.status == "ok"]
    return found | ({"results": _results(members)} if members else {})
