"""From scores to verdicts.

Case score = Σ weight·score / Σ weight over the evaluators that scored; 0 when all weights are 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from agentv_ci.contracts.exchange import EvaluatorOutcome, Grade, Score, Usage, Verdict
from agentv_ci.contracts.plan import PlanEvaluator
from agentv_ci.contracts.results import BORDERLINE, PRECISION


def judge_one(evaluator: PlanEvaluator, score: Score, threshold: float) -> EvaluatorOutcome:
    """Return what an evaluator's score means; an error stays an error, also under `negate`."""
    pass_line = threshold if evaluator.min_score is None else evaluator.min_score
    value = min(1.0, max(0.0, score.score)) if score.error is None else 0.0
    hits, misses = score.hits, score.misses
    if evaluator.negate and score.error is None:
        value, hits, misses = 1.0 - value, misses, hits
    return EvaluatorOutcome(
        name=evaluator.name,
        type=evaluator.type,
        status="error" if score.error is not None else "ok",
        score=value,
        weight=evaluator.weight,
        required=evaluator.required,
        verdict="error" if score.error is not None else verdict_of(value, pass_line),
        hits=hits,
        misses=misses,
        reasoning=score.error if score.error is not None else score.reasoning,
        raw_response=score.raw_response,
    )


def combine(outcomes: Sequence[EvaluatorOutcome], threshold: float, *, judge_usage: Usage | None) -> Grade:
    """Return the grade of an answer.

    One evaluator that could not score makes the verdict `error`: neither pass nor fail. A required evaluator that
    does not pass fails the case whatever the mean.
    """
    scored = [each for each in outcomes if each.status == "ok"]
    broken = [each for each in outcomes if each.status == "error"]
    score = _weighted_mean(scored)
    verdict = verdict_of(score, threshold)
    if any(each.required and each.verdict != "pass" for each in scored):
        verdict = "fail"
    if not any(each.weight for each in scored):
        verdict = "fail"
    return Grade(
        score=score,
        verdict="error" if broken else verdict,
        hits=tuple(hit for each in scored for hit in each.hits),
        misses=tuple(miss for each in scored for miss in each.misses),
        reasoning=" | ".join(f"{each.name}: {each.reasoning}" for each in outcomes if each.reasoning),
        outcomes=tuple(outcomes),
        error="; ".join(f"evaluator '{each.name}': {each.reasoning}" for each in broken) or None,
        judge_usage=judge_usage,
    )


def verdict_of(score: float, threshold: float) -> Verdict:
    """Return `pass` from the threshold on, else `borderline` from 0.6 on, else `fail`."""
    if round(score, PRECISION) >= round(threshold, PRECISION):
        return "pass"
    return "borderline" if round(score, PRECISION) >= BORDERLINE else "fail"


def _weighted_mean(scored: Sequence[EvaluatorOutcome]) -> float:
    heaviest = max((each.weight for each in scored), default=0.0)
    if heaviest == 0:
        return 0.0
    # Relative weights: the sum of very large ones would overflow.
    shares = [each.weight / heaviest for each in scored]
    weighted = math.fsum(share * each.score for share, each in zip(shares, scored, strict=True))
    return min(1.0, round(weighted / math.fsum(shares), PRECISION))
