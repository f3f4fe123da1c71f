"""Scores become verdicts."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import Verdict
from agentv_ci.contracts.evaluators import ContainsEvaluator, RegexEvaluator, ToolTrajectoryEvaluator
from agentv_ci.contracts.exchange import Grade, Score
from agentv_ci.contracts.plan import PlanCodeEvaluator, PlanLlmJudgeEvaluator, PlanSchemaEvaluator
from agentv_ci.contracts.results import EvaluatorResult
from agentv_ci.evaluate.scoring import Assessment, assessment_of, combine, verdict_of_score
from tests.evaluate.builders import Judge, grade, plan_case, tools

THRESHOLD = 0.8

scores = st.floats(0, 1)
weights = st.floats(0.001, 1000)


def assessed(score: float | Score, name: str = "c", **given: Any) -> Assessment:
    """What an evaluator's score means; `given` are its settings."""
    evaluator = ContainsEvaluator(name=name, type="contains", value="x", **given)
    return assessment_of(evaluator, score if isinstance(score, Score) else Score(score), THRESHOLD)


def found(score: float | Score, **given: Any) -> EvaluatorResult:
    return assessed(score, **given).result


def combined(*assessments: Assessment, threshold: float = THRESHOLD) -> Grade:
    return combine(assessments, threshold)


def contains(value: str, **given: Any) -> ContainsEvaluator:
    return ContainsEvaluator(name=value, type="contains", value=value, **given)


@pytest.mark.parametrize(
    ("score", "threshold", "verdict"),
    [
        (1.0, 0.8, "pass"),
        (0.8, 0.8, "pass"),
        (0.1 + 0.7, 0.8, "pass"),
        (0.79, 0.8, "borderline"),
        (0.6, 0.8, "borderline"),
        (1 - 0.1 - 0.1 - 0.1 - 0.1, 0.8, "borderline"),
        (0.59, 0.8, "fail"),
        (0.0, 0.8, "fail"),
        (0.5, 0.5, "pass"),
        (0.49, 0.5, "fail"),
        (0.65, 0.7, "borderline"),
        (0.95, 1.0, "borderline"),
        (1.0, 1.0, "pass"),
        (0.0, 0.0, "pass"),
    ],
)
def test_verdict_follows_the_score_and_the_threshold(score: float, threshold: float, verdict: Verdict) -> None:
    assert verdict_of_score(score, threshold) == verdict


@pytest.mark.parametrize(("score", "kept"), [(1.7, 1.0), (-0.2, 0.0), (0.3, 0.3)])
def test_score_is_clamped_when_it_leaves_the_range(score: float, kept: float) -> None:
    assert found(score).score == kept


@pytest.mark.parametrize(
    ("score", "min_score", "verdict"),
    [
        (0.5, 0.5, "pass"),
        (0.9, 0.95, "borderline"),
        (0.5, 0.9, "fail"),
        (0.0, 0.0, "pass"),
    ],
)
def test_min_score_moves_an_evaluators_own_pass_line(score: float, min_score: float, verdict: Verdict) -> None:
    assert found(score, min_score=min_score).verdict == verdict


@pytest.mark.parametrize(("score", "verdict"), [(0.8, "pass"), (0.7, "borderline"), (0.1, "fail")])
def test_pass_line_of_an_evaluator_is_the_threshold_when_it_has_none(score: float, verdict: Verdict) -> None:
    assert found(score).verdict == verdict


def test_negate_turns_the_score_and_swaps_hits_and_misses() -> None:
    outcome = found(Score(0.25, hits=("there",), misses=("gone",), reasoning="why"), negate=True)
    assert (outcome.score, outcome.verdict, outcome.hits, outcome.misses, outcome.reasoning) == (
        0.75,
        "borderline",
        ("negated: gone",),
        ("negated: there",),
        "why",
    )


def test_error_stays_an_error_when_negated() -> None:
    outcome = found(Score(error="it broke", raw_response="?"), negate=True)
    assert (outcome.status, outcome.verdict, outcome.score, outcome.reasoning, outcome.raw_response) == (
        "error",
        "error",
        0.0,
        "it broke",
        "?",
    )


def test_error_has_no_score_when_one_is_given_besides() -> None:
    assert found(Score(0.9, error="it broke")).score == 0.0


@pytest.mark.parametrize(
    ("parts", "score", "verdict"),
    [
        ([(1.0, 1.0)], 1.0, "pass"),
        ([(1.0, 1.0), (0.0, 1.0)], 0.5, "fail"),
        ([(1.0, 3.0), (0.0, 1.0)], 0.75, "borderline"),
        ([(1.0, 4.0), (0.0, 1.0)], 0.8, "pass"),
        ([(0.1, 1.0), (0.2, 1.0), (0.3, 1.0)], 0.2, "fail"),
        ([(0.8, 0.1)] * 3, 0.8, "pass"),
        ([(0.8, 0.1)] * 10, 0.8, "pass"),
        ([(0.6, 1 / 3)] * 7, 0.6, "borderline"),
        ([(1.0, 0.0), (0.5, 2.0)], 0.5, "fail"),
    ],
)
def test_case_score_is_the_weighted_mean(parts: list[tuple[float, float]], score: float, verdict: Verdict) -> None:
    grade = combined(*(assessed(each, weight=weight) for each, weight in parts))
    assert (grade.score, grade.verdict) == (score, verdict)


@pytest.mark.parametrize("threshold", [0.0, 0.8])
def test_case_fails_with_score_zero_when_all_weights_are_zero(threshold: float) -> None:
    grade = combined(assessed(1.0, weight=0), assessed(1.0, weight=0), threshold=threshold)
    assert (grade.score, grade.verdict) == (0.0, "fail")


def test_evaluator_without_weight_still_tells_what_it_assessed() -> None:
    grade = combined(assessed(Score(1.0, hits=("seen",)), weight=0), assessed(Score(1.0, hits=("counted",))))
    assert grade.hits == ("seen", "counted")


def test_weights_near_the_largest_float_give_their_mean() -> None:
    assert combined(*(assessed(score, weight=1e308) for score in (1.0, 0.5, 0.0))).score == 0.5


@pytest.mark.parametrize(
    ("score", "given", "verdict"),
    [
        (0.0, {}, "fail"),
        (0.7, {}, "fail"),
        (0.0, {"weight": 0}, "fail"),
        (0.7, {"min_score": 0.7}, "pass"),
        (0.9, {"min_score": 0.95}, "fail"),
        (1.0, {}, "pass"),
        (1.0, {"negate": True}, "fail"),
        (0.0, {"negate": True}, "pass"),
    ],
)
def test_required_evaluator_decides_whatever_the_mean(score: float, given: dict[str, Any], verdict: Verdict) -> None:
    assert combined(assessed(1.0, weight=99), assessed(score, required=True, **given)).verdict == verdict


def test_score_stays_the_mean_when_a_required_evaluator_fails() -> None:
    assert combined(assessed(1.0, weight=3), assessed(0.0, required=True)).score == 0.75


def test_evaluator_that_is_not_required_may_fail_when_the_mean_passes() -> None:
    assert combined(assessed(1.0, weight=9), assessed(0.0)).verdict == "pass"


def test_findings_are_joined_in_the_order_of_the_evaluators() -> None:
    grade = combined(
        assessed(Score(1.0, hits=("one", "two"), reasoning="fine"), "a"),
        assessed(Score(0.0, misses=("three",)), "b"),
        assessed(Score(0.5, hits=("four",), misses=("five",), reasoning="so so"), "c"),
    )
    assert (grade.hits, grade.misses, grade.reasoning) == (
        ("one", "two", "four"),
        ("three", "five"),
        "a: fine | c: so so",
    )


def test_one_broken_evaluator_makes_the_verdict_an_error_and_leaves_the_others_scores() -> None:
    grade = combined(
        assessed(Score(1.0, hits=("one",)), "a", weight=3),
        assessed(Score(error="it broke", hits=("lost",)), "b", weight=99),
        assessed(Score(0.0, misses=("two",)), "c"),
    )
    assert (grade.verdict, grade.score, grade.hits, grade.misses, grade.error) == (
        "error",
        0.75,
        ("one",),
        ("two",),
        "evaluator 'b': it broke",
    )
    assert [each.verdict for each in grade.results] == ["pass", "error", "fail"]


def test_verdict_is_an_error_when_a_required_evaluator_fails_beside_a_broken_one() -> None:
    assert combined(assessed(0.0, required=True), assessed(Score(error="it broke"))).verdict == "error"


def test_score_is_zero_when_every_evaluator_is_broken() -> None:
    grade = combined(assessed(Score(error="one"), "a"), assessed(Score(error="two"), "b"))
    assert (grade.score, grade.verdict, grade.error) == (0.0, "error", "evaluator 'a': one; evaluator 'b': two")


def test_nothing_is_wrong_when_every_evaluator_scored() -> None:
    assert combined(assessed(0.0)).error is None


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(st.tuples(scores, weights), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_score_does_not_depend_on_the_order_of_the_evaluators(parts: list[tuple[float, float]], random: Any) -> None:
    outcomes = [assessed(score, weight=weight) for score, weight in parts]
    shuffled = random.sample(outcomes, len(outcomes))
    assert combined(*shuffled).score == combined(*outcomes).score


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(st.tuples(scores, weights), min_size=1, max_size=8))
def test_score_lies_between_the_lowest_and_the_highest(parts: list[tuple[float, float]]) -> None:
    score = combined(*(assessed(each, weight=weight) for each, weight in parts)).score
    lowest, highest = min(each for each, _ in parts), max(each for each, _ in parts)
    assert lowest - 1e-12 <= score <= highest + 1e-12


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(st.tuples(scores, weights), min_size=1, max_size=8), st.sampled_from([0.25, 2.0, 1024.0]))
def test_score_stays_when_all_weights_grow_alike(parts: list[tuple[float, float]], factor: float) -> None:
    plain = combined(*(assessed(score, weight=weight) for score, weight in parts)).score
    assert combined(*(assessed(score, weight=weight * factor) for score, weight in parts)).score == plain


@settings(deadline=None, derandomize=True, max_examples=50)
@given(scores, scores)
def test_verdict_is_pass_from_the_threshold_on(score: float, threshold: float) -> None:
    if not math.isclose(score, threshold, abs_tol=1e-9):
        assert (verdict_of_score(score, threshold) == "pass") == (score > threshold)


def test_every_evaluator_of_a_case_is_heard_in_its_order() -> None:
    grade_ = grade(plan_case(contains("a"), contains("b", weight=3), contains("c")), "only a and b")
    assert [(each.name, each.type, each.score, each.weight) for each in grade_.results] == [
        ("a", "contains", 1.0, 1.0),
        ("b", "contains", 1.0, 3.0),
        ("c", "contains", 0.0, 1.0),
    ]
    assert (grade_.score, grade_.verdict) == (0.8, "pass")


def test_threshold_of_the_case_moves_its_pass_line() -> None:
    case = plan_case(contains("a"), contains("b"), threshold=0.5)
    assert grade(case, "only a").verdict == "pass"


def test_outcome_names_the_kind_of_every_evaluator() -> None:
    case = plan_case(
        contains("a"),
        RegexEvaluator(name="r", type="regex", value="a"),
        PlanSchemaEvaluator(name="s", schema_=True, format="json"),
        ToolTrajectoryEvaluator(name="t", type="tool_trajectory", mode="any_order", minimums={"x": 1}),
        PlanCodeEvaluator(name="c", command="echo '{\"score\": 1}'"),
        PlanLlmJudgeEvaluator(name="j", target="judge"),
    )
    outcomes = grade(case, "a", tools(ask=Judge(['{"score": 1}']))).results
    assert [each.type for each in outcomes] == ["contains", "regex", "schema", "tool_trajectory", "code", "llm_judge"]


def test_an_evaluator_that_breaks_leaves_the_others_their_scores() -> None:
    case = plan_case(contains("a"), PlanCodeEvaluator(name="script", command="exit 3"), contains("b"))
    grade_ = grade(case, "only a")
    assert [(each.name, each.status, each.score) for each in grade_.results] == [
        ("a", "ok", 1.0),
        ("script", "error", 0.0),
        ("b", "ok", 0.0),
    ]
    assert (grade_.verdict, grade_.score, grade_.error) == (
        "error",
        0.5,
        "evaluator 'script': the script exited with code 3: no output",
    )
