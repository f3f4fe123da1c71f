"""Scores become verdicts."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.exchange import Grade, Score
from agentv_ci.contracts.results import EvaluatorResult
from agentv_ci.evaluate.scoring import Assessment, assessment_of, combine, verdict_of_score
from tests.evaluate.builders import evaluator, grade, plan_case, tools

SCORES = st.floats(0, 1)
PARTS = st.lists(st.tuples(SCORES, st.floats(0.001, 1000)), min_size=1, max_size=8)


def assessed(score: float | Score, name: str = "c", **given: Any) -> Assessment:
    """The assessment of a score; `given` are settings of its evaluator."""
    score = score if isinstance(score, Score) else Score(score)
    return assessment_of(evaluator("contains", name=name, value="x", **given), score, 0.8)


def found(score: float | Score, **given: Any) -> EvaluatorResult:
    return assessed(score, **given).result


def combined(*assessments: Assessment, threshold: float = 0.8) -> Grade:
    return combine(assessments, threshold)


@pytest.mark.parametrize(
    ("score", "threshold", "verdict"),
    [
        (0.8, 0.8, "pass"),
        (0.1 + 0.7, 0.8, "pass"),
        (0.79, 0.8, "borderline"),
        (0.6, 0.8, "borderline"),
        (1 - 0.1 - 0.1 - 0.1 - 0.1, 0.8, "borderline"),
        (0.59, 0.8, "fail"),
        (0.5, 0.5, "pass"),
        (0.95, 1.0, "borderline"),
        (0.0, 0.0, "pass"),
    ],
)
def test_verdict_follows_the_score_and_the_threshold(score: float, threshold: float, verdict: Verdict) -> None:
    assert verdict_of_score(score, threshold) == verdict
    assert found(score, min_score=threshold).verdict == verdict


@given(SCORES, SCORES)
def test_score_passes_at_or_above_the_threshold(score: float, threshold: float) -> None:
    if not math.isclose(score, threshold, abs_tol=1e-9):
        assert (verdict_of_score(score, threshold) == "pass") == (score > threshold)


@pytest.mark.parametrize(
    ("score", "given", "kept"),
    [
        (1.7, {}, "1.0"),
        (-0.2, {}, "0.0"),
        (-0.0, {}, "0.0"),
        (float("nan"), {}, "0.0"),
        (float("-inf"), {}, "0.0"),
        (1.0, {"negate": True}, "0.0"),
    ],
)
def test_score_is_clamped(score: float, given: dict[str, Any], kept: str) -> None:
    assert str(found(score, **given).score) == kept


def test_negate_inverts_the_score_and_swaps_findings() -> None:
    result = found(Score(0.25, hits=("there",), misses=("gone",), reasoning="why"), negate=True)
    assert (result.score, result.verdict, result.reasoning) == (0.75, "borderline", "why")
    assert (result.hits, result.misses) == (("negated: gone",), ("negated: there",))


@pytest.mark.parametrize("negate", [True, False])
def test_error_has_no_score(negate: bool) -> None:
    result = found(Score(0.9, error="no reply", raw_response="?"), negate=negate)
    assert (result.status, result.verdict, result.score) == ("error", "error", 0.0)
    assert (result.reasoning, result.raw_response) == ("no reply", "?")


@pytest.mark.parametrize(
    ("parts", "score", "verdict"),
    [
        ([(1.0, 1.0), (0.0, 1.0)], 0.5, "fail"),
        ([(1.0, 4.0), (0.0, 1.0)], 0.8, "pass"),
        ([(0.1, 1.0), (0.2, 1.0), (0.3, 1.0)], 0.2, "fail"),
        ([(0.8, 0.1)] * 10, 0.8, "pass"),
        ([(0.6, 1 / 3)] * 7, 0.6, "borderline"),
        ([(1.0, 0.0), (0.5, 2.0)], 0.5, "fail"),
        ([(1.0, 1e308), (0.5, 1e308), (0.0, 1e308)], 0.5, "fail"),
    ],
)
def test_score_of_the_case_is_the_weighted_mean(
    parts: list[tuple[float, float]], score: float, verdict: Verdict
) -> None:
    grade_ = combined(*(assessed(each, weight=weight) for each, weight in parts))
    assert (grade_.score, grade_.verdict, grade_.error) == (score, verdict, None)


@pytest.mark.parametrize("threshold", [0.0, 0.8])
def test_case_without_weight_fails(threshold: float) -> None:
    grade_ = combined(assessed(1.0, weight=0), assessed(1.0, weight=0), threshold=threshold)
    assert (grade_.score, grade_.verdict) == (0.0, "fail")
    assert grade_.misses == ("all weights are 0, so the score is 0",)


@settings(max_examples=50)
@given(PARTS, st.randoms(use_true_random=False), st.sampled_from([0.25, 2.0, 1024.0]))
def test_mean_is_bounded_and_independent_of_order_and_scale(
    parts: list[tuple[float, float]], random: Any, factor: float
) -> None:
    score = combined(*(assessed(each, weight=weight) for each, weight in parts)).score
    shuffled = random.sample(parts, len(parts))
    assert combined(*(assessed(each, weight=weight * factor) for each, weight in shuffled)).score == score
    assert min(parts)[0] - 1e-12 <= score <= max(parts)[0] + 1e-12


@pytest.mark.parametrize(
    ("score", "given", "verdict"),
    [
        (0.7, {}, "fail"),
        (0.0, {"weight": 0}, "fail"),
        (0.7, {"min_score": 0.7}, "pass"),
        (0.9, {"min_score": 0.95}, "fail"),
        (1.0, {}, "pass"),
        (1.0, {"negate": True}, "fail"),
        (0.0, {"negate": True}, "pass"),
        (0.0, {"required": False}, "pass"),
    ],
)
def test_required_evaluator_decides_whatever_the_mean(score: float, given: dict[str, Any], verdict: Verdict) -> None:
    grade_ = combined(assessed(1.0, weight=99), assessed(score, **{"required": True, **given}))
    assert grade_.verdict == verdict
    assert grade_.score > 0.9


@pytest.mark.parametrize(
    ("score", "negate", "fails"),
    [
        (Score(0.9, misses_required=True), False, True),
        (Score(0.1, misses_required=True), True, False),
        (Score(1.0, weighs_nothing=True), False, False),
        (Score(0.0, weighs_nothing=True), True, False),
    ],
)
def test_requirement_inside_an_evaluator_fails_the_case_unless_negated(score: Score, negate: bool, fails: bool) -> None:
    assessment = assessed(score, negate=negate, min_score=0.0)
    assert assessment.fails_case == fails
    assert assessment.result.verdict == ("fail" if fails or score.weighs_nothing else "pass")


@pytest.mark.parametrize(
    ("kind", "given", "settings"),
    [
        ("contains", {"value": "é", "weight": 2, "required": True}, '{"value": "é"}'),
        (
            "contains",
            {"value": "x", "negate": True, "min_score": 0.5},
            '{"min_score": 0.5, "negate": true, "value": "x"}',
        ),
        ("cost", {"max_usd": 0.5}, '{"max_usd": 0.5}'),
        (
            "schema",
            {"schema": {"type": "object"}, "format": "json"},
            '{"schema": {"type": "object"}, "format": "json"}',
        ),
        ("is_json", {}, None),
    ],
)
def test_settings_in_a_result(kind: str, given: dict[str, Any], settings: str | None) -> None:
    assert assessment_of(evaluator(kind, **given), Score(1.0), 0.8).result.settings == settings


def test_findings_are_joined_in_the_order_of_the_evaluators() -> None:
    grade_ = combined(
        assessed(Score(1.0, hits=("one", "two"), reasoning="fine"), "a", weight=0),
        assessed(Score(0.0, misses=("three",)), "b"),
        assessed(Score(0.5, hits=("four",), misses=("five",), reasoning="so so"), "c"),
    )
    assert (grade_.hits, grade_.misses) == (("one", "two", "four"), ("three", "five"))
    assert grade_.reasoning == "a: fine | c: so so"


def test_one_error_makes_the_verdict_an_error_and_keeps_the_other_scores() -> None:
    grade_ = combined(
        assessed(Score(1.0, hits=("one",)), "a", weight=3),
        assessed(Score(error="no reply", hits=("lost",)), "b", weight=99),
        assessed(Score(0.0, misses=("two",)), "c", required=True),
    )
    assert (grade_.verdict, grade_.score, grade_.error) == ("error", 0.75, "evaluator 'b': no reply")
    assert (grade_.hits, grade_.misses) == (("one",), ("two",))
    assert [each.verdict for each in grade_.results] == ["pass", "error", "fail"]
    only = combined(assessed(Score(error="one"), "a"), assessed(Score(error="two"), "b"))
    assert (only.score, only.verdict, only.error) == (0.0, "error", "evaluator 'a': one; evaluator 'b': two")


UNMEASURED = Score(unmeasured="tokens")


@pytest.mark.parametrize(
    ("assessments", "verdict"),
    [
        ([assessed(UNMEASURED), assessed(1.0)], "pass"),
        ([assessed(UNMEASURED)], "error"),
        ([assessed(UNMEASURED, required=True), assessed(1.0)], "error"),
        ([assessed(UNMEASURED), assessed(1.0, weight=0)], "error"),
        ([assessed(UNMEASURED, weight=0), assessed(1.0, weight=0)], "fail"),
        ([assessed(UNMEASURED), assessed(Score(error="no reply"))], "error"),
    ],
)
def test_missing_measure_is_an_error_when_nothing_else_counts(assessments: list[Assessment], verdict: Verdict) -> None:
    assert combined(*assessments).verdict == verdict


def test_score_outside_of_the_scale_is_a_warning_and_evaluators_keep_their_order() -> None:
    code, contains = evaluator("code", command="echo '{\"score\": 1.5}'"), evaluator("contains", value="a", weight=3)
    warnings: list[str] = []
    case = plan_case(code, contains, evaluator("regex", value="x"), threshold=0.5)
    grade_ = grade(case, "a", tools(warn=warnings.append))
    assert [(each.name, each.score, each.weight) for each in grade_.results] == [
        ("code", 1.0, 1.0),
        ("contains", 1.0, 3.0),
        ("regex", 0.0, 1.0),
    ]
    assert warnings == ["evaluator 'code' scored 1.5, outside 0 to 1; it counts as 1; case 'one'"]
    assert (grade_.verdict, grade_.score) == ("pass", 0.8)
