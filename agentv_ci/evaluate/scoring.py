"""From scores to verdicts.

Case score = Σ weight·score / Σ weight over the evaluators that scored; 0 when all weights are 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.contracts.base import EvaluatorVerdict, Verdict
from agentv_ci.contracts.exchange import Grade, Score
from agentv_ci.contracts.plan_evaluators import PlanEvaluator
from agentv_ci.contracts.results import BORDERLINE, PRECISION, EvaluatorResult

_ENCODER = json.JSONEncoder(ensure_ascii=False)
"""Made once: `json.dumps` would make one for each text."""
IN_RESULTS = {"type", "name", "weight", "required", "evaluators", "files"}
"""Settings that results have as fields; members have results of their own."""


class Assessment(Struct, frozen=True):
    """What an evaluator's score means for the case."""

    result: EvaluatorResult
    fails_case: bool = False
    """Whether this alone fails the case, whatever the mean."""


def assessment_of(evaluator: PlanEvaluator, score: Score, threshold: float) -> Assessment:
    """Return what an evaluator's score means for the case.

    An error stays an error, also with `negate`. That also swaps hits and misses, and lifts
    requirements inside the evaluator.
    """
    if (unscored := _unscored(evaluator, score)) is not None:
        return Assessment(unscored)
    value, hits, misses = min(max(0.0, score.score), 1.0), score.hits, score.misses
    if evaluator.negate:
        value, hits, misses = 1.0 - value, _negated(misses), _negated(hits)
    if score.weighs_nothing:
        value = 0.0
    misses_required = score.misses_required and not evaluator.negate
    least = threshold if evaluator.min_score is None else evaluator.min_score
    verdict = verdict_of_score(value, least)
    if misses_required or score.weighs_nothing:
        verdict = "fail"
    if value is not score.score or evaluator.negate:
        score = replace(score, score=value, hits=hits, misses=misses)
    fails_case = misses_required or (evaluator.required and verdict != "pass")
    return Assessment(_result(evaluator, score, verdict, score.reasoning), fails_case)


def _unscored(evaluator: PlanEvaluator, score: Score) -> EvaluatorResult | None:
    if score.error is not None:
        return _result(evaluator, score, "error", score.error)
    if score.unmeasured is not None:
        reason = f"the target does not report {score.unmeasured}"
        return _result(evaluator, score, "skipped", reason)
    if score.skipped is not None:
        return _result(evaluator, score, "skipped", score.skipped)
    return None


def _negated(findings: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"negated: {finding}" for finding in findings)


def _result(
    evaluator: PlanEvaluator, score: Score, verdict: EvaluatorVerdict, reasoning: str
) -> EvaluatorResult:
    status: Literal["ok", "error", "skipped"] = "ok"
    if verdict in ("error", "skipped"):
        status = verdict
    return EvaluatorResult(
        name=evaluator.name,
        type=evaluator.type,
        status=status,
        score=score.score if status == "ok" else 0.0,
        weight=evaluator.weight,
        required=evaluator.required,
        verdict=verdict,
        hits=score.hits,
        misses=score.misses,
        reasoning=reasoning,
        settings=settings_text(evaluator),
        judge=score.judge,
        judge_prompt=score.judge_prompt,
        raw_response=score.raw_response,
        broken_contract=score.broken_contract,
        stderr=score.stderr,
        evaluator_results=score.members or None,
        preferences=score.preferences or None,
    )


def settings_text(evaluator: PlanEvaluator) -> str | None:
    """Return the settings that a result does not have as fields, without defaults.

    None without any.
    """
    given = evaluator.model_dump(
        mode="json", by_alias=False, exclude=IN_RESULTS, exclude_defaults=True
    )
    settings = {name.removesuffix("_"): value for name, value in given.items()}
    if settings:
        return _ENCODER.encode(settings)
    return None


def settled(assessments: Iterable[Assessment]) -> tuple[EvaluatorResult, ...]:
    """Return the results of assessments, with skipped ones that are required as errors."""
    return tuple(map(_settled, assessments))


def _settled(assessment: Assessment) -> EvaluatorResult:
    result = assessment.result
    if result.status == "skipped" and result.required:
        return _as_error(result)
    return result


def fail_case(assessments: Iterable[Assessment]) -> bool:
    """Whether an assessment alone fails the case."""
    return any(assessment.fails_case for assessment in assessments)


def _as_error(result: EvaluatorResult) -> EvaluatorResult:
    return result.model_copy(update={"status": "error", "verdict": "error"})


def with_status(
    results: Iterable[EvaluatorResult], status: Literal["ok", "error", "skipped"]
) -> list[EvaluatorResult]:
    """Return the results with a status."""
    return [result for result in results if result.status == status]


class Weighted(Protocol):
    """What has a weight in a mean."""

    @property
    def weight(self) -> float:
        """Its weight."""


def have_weight(parts: Iterable[Weighted]) -> bool:
    """Whether any part of a mean has weight."""
    return any(part.weight for part in parts)


def lacks_weight(results: Sequence[EvaluatorResult]) -> bool:
    """Whether no scored result has weight while a skipped one has."""
    scored, skipped = with_status(results, "ok"), with_status(results, "skipped")
    if not scored:
        return bool(skipped)
    return have_weight(skipped) and not have_weight(scored)


def combine(assessments: Sequence[Assessment], threshold: float) -> Grade:
    """Return the grade of an answer.

    The verdict is `error` when an evaluator could not score, or when nothing that counts has
    scored. A required evaluator that does not pass fails the case, whatever the mean.
    """
    every = settled(assessments)
    # Comparisons with other arms say nothing of this answer, not even that it cannot be scored.
    results = tuple(result for result in every if not result.compares_arms)
    scored = with_status(results, "ok")
    if lacks_weight(results):
        results = tuple(
            _as_error(result) if result.status == "skipped" else result for result in results
        )
    broken = with_status(results, "error")
    score = mean_score(scored)
    verdict = verdict_of_score(score, threshold)
    if fail_case(assessments) or not have_weight(scored):
        verdict = "fail"
    misses = list(chain.from_iterable(result.misses for result in scored))
    if scored and not have_weight(scored):
        misses.append("all weights are 0, so the score is 0")
    return Grade(
        score=score,
        verdict="error" if broken else verdict,
        hits=tuple(chain.from_iterable(result.hits for result in scored)),
        misses=tuple(misses),
        reasoning=" | ".join(reasonings(results)),
        results=(*results, *(result for result in every if result.compares_arms)),
        error=_reasons(broken),
    )


def reasonings(results: Iterable[EvaluatorResult]) -> Iterator[str]:
    """Yield the explanations of results, each with its name."""
    for result in results:
        if result.reasoning:
            yield f"{result.name}: {result.reasoning}"


def _reasons(broken: Iterable[EvaluatorResult]) -> str | None:
    """Return why evaluators could not score; None if all could."""
    reasons = (f"evaluator '{result.name}': {result.reasoning}" for result in broken)
    return "; ".join(reasons) or None


def verdict_of_score(score: float, threshold: float) -> Verdict:
    """Return `pass` at or above the threshold, else `borderline` at or above 0.6, else `fail`."""
    if round(score, PRECISION) >= round(threshold, PRECISION):
        return "pass"
    if round(score, PRECISION) >= BORDERLINE:
        return "borderline"
    return "fail"


def share_met(findings: Iterable[tuple[bool, str]]) -> Score:
    """Return the share of met findings as the score, each a hit or a miss; 1 without findings."""
    pairs = list(findings)
    hits = tuple(finding for is_met, finding in pairs if is_met)
    misses = tuple(finding for is_met, finding in pairs if not is_met)
    return Score(len(hits) / len(pairs) if pairs else 1.0, hits=hits, misses=misses)


def mean_score(results: Iterable[EvaluatorResult]) -> float:
    """Return the weighted mean of scores."""
    return weighted_mean((result.weight, result.score) for result in results)


def weighted_mean(weighted: Iterable[tuple[float, float]]) -> float:
    """Return Σ weight·score / Σ weight of (weight, score) pairs; 0 when all weights are 0."""
    pairs = list(weighted)
    heaviest = max((weight for weight, _ in pairs), default=0.0)
    if heaviest == 0:
        return 0.0
    # Relative to the heaviest: the sum of very large weights would overflow.
    shares = [(weight / heaviest, score) for weight, score in pairs]
    total = math.fsum(share for share, _ in shares)
    return min(1.0, round(math.fsum(share * score for share, score in shares) / total, PRECISION))
