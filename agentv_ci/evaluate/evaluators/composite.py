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
from agentv_ci.evaluate.scoring import (
    Assessment,
    fail_case,
    have_weight,
    lacks_weight,
    mean_score,
    reasonings,
    settled,
    with_status,
)
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
    """Aggregate the scores of members: an error is one of the composite, a skipped one is ignored."""
    assessments = await assess(settings.evaluators, submission, services)
    members = settled(assessments)
    if broken := with_status(members, "error"):
        reasons = "; ".join(f"member '{member.name}': {member.reasoning}" for member in broken)
        return Score(error=reasons, members=members)
    weighed = [_weighed(member, settings) for member in members]
    if lacks_weight(weighed):
        return Score(unmeasured="what the members measure", members=members)
    score = await _aggregated(settings, with_status(weighed, "ok"), submission, services)
    return replace(score, members=members, misses_required=fail_case(assessments))


def _weighed(member: EvaluatorResult, settings: PlanCompositeEvaluator) -> EvaluatorResult:
    aggregator = settings.aggregator
    if isinstance(aggregator, PlanWeightedAverage):
        return member.model_copy(update={"weight": aggregator.weights[member.name]})
    return member


async def _aggregated(
    settings: PlanCompositeEvaluator,
    scored: Sequence[EvaluatorResult],
    submission: Submission,
    services: EvaluatorServices,
) -> Score:
    match settings.aggregator:
        case PlanWeightedAverage():
            return _mean(scored)
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


def _mean(scored: Sequence[EvaluatorResult]) -> Score:
    return Score(
        mean_score(scored),
        weighs_nothing=not have_weight(scored),
        hits=tuple(chain.from_iterable(_named(score, score.hits) for score in scored)),
        misses=tuple(chain.from_iterable(_named(score, score.misses) for score in scored)),
        reasoning="; ".join(reasonings(scored)),
    )


def _results(scored: Sequence[EvaluatorResult]) -> JsonObject:
    """Return name → result, as aggregators read it."""
    return {score.name: _result(score) for score in scored}


def _result(result: EvaluatorResult) -> JsonObject:
    found: JsonObject = result.model_dump(mode="json", include=AGGREGATED)
    members = with_status(result.evaluator_results or (), "ok")
    return found | ({"results": _results(members)} if members else {})


def _named(member: EvaluatorResult, findings: Iterable[str]) -> Iterator[str]:
    """Yield findings with the name of their member."""
    for finding in findings:
        yield f"[{member.name}] {finding}"
