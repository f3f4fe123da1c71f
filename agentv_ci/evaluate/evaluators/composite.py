"""`type: composite`: combine the scores of several evaluators into one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
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
    members = settled(assessment.result for assessment in assessments)
    if broken := [member for member in members if member.status == "error"]:
        reasons = "; ".join(f"member '{member.name}': {member.reasoning}" for member in broken)
        return Score(error=reasons, members=members)
    weighed = [
        member.model_copy(update={"weight": _weight(member, settings)}) for member in members
    ]
    if lacks_weight(weighed):
        return Score(unmeasured="what the members measure", members=members)
    scored = [member for member in weighed if member.status == "ok"]
    score = await _aggregated(settings, scored, submission, services)
    return replace(
        score,
        members=members,
        misses_required=any(assessment.fails_case for assessment in assessments),
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
                weighted_mean((score.weight, score.score) for score in scored),
                weighs_nothing=not any(score.weight for score in scored),
                hits=tuple(chain.from_iterable(_named(score, score.hits) for score in scored)),
                misses=tuple(chain.from_iterable(_named(score, score.misses) for score in scored)),
                reasoning="; ".join(
                    f"{score.name}: {score.reasoning}" for score in scored if score.reasoning
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
    return {score.name: _result(score) for score in scored}


def _result(result: EvaluatorResult) -> JsonObject:
    found: JsonObject = result.model_dump(mode="json", include=AGGREGATED)
    members = [member for member in result.evaluator_results or () if member.status == "ok"]
    return found | ({"results": _results(members)} if members else {})


def _named(member: EvaluatorResult, findings: Iterable[str]) -> Iterator[str]:
    """Yield findings with the name of their member."""
    for finding in findings:
        yield f"[{member.name}] {finding}"
