"""`composite` with its three aggregators."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from agentv_ci.contracts.exchange import JudgeQuestion, ProviderError, Response
from agentv_ci.contracts.plan_evaluators import PlanEvaluator
from agentv_ci.contracts.plan_parts import FilePart
from agentv_ci.contracts.results import EvaluatorResult, ToolCall
from agentv_ci.evaluate.evaluators import evaluate
from agentv_ci.evaluate.judging import ONLY_DATA, score_contract
from tests.evaluate.builders import Judge, answered, assess, evaluator, fails_case, grade, plan_case, submission, tools

GOOD = '{"score": 0.9, "hits": ["greets"], "misses": ["long"], "reasoning": "in all"}'
JUDGE = {"type": "llm_judge", "target": "judge"}
BREAKS = evaluator("code", name="broken", command="echo nothing; exit 3")
NOT_MEASURED = evaluator("cost", max_usd=1)
HIT = {"hits": ["contains 'Hello'"], "misses": [], "reasoning": "", "score": 1.0, "verdict": "pass"}


def yes(name: str = "yes", **given: Any) -> PlanEvaluator:
    return evaluator("contains", name=name, value="Hello", **given)


def no(name: str = "no", **given: Any) -> PlanEvaluator:
    return evaluator("contains", name=name, value="Goodbye", **given)


def composite(*members: PlanEvaluator, aggregator: dict[str, Any] | None = None, **given: Any) -> PlanEvaluator:
    average = {"type": "weighted_average", "weights": {each.name: each.weight for each in members}}
    return evaluator(
        "composite", **{"name": "all", "evaluators": members, "aggregator": aggregator or average, **given}
    )


def combined(*members: PlanEvaluator, answer: str | Response = "Hello", **given: Any) -> EvaluatorResult:
    return assess(composite(*members, **given), answer)


def members(result: EvaluatorResult) -> list[tuple[str, str, float]]:
    return [(each.name, each.verdict, each.score) for each in result.evaluator_results or ()]


def script(code: str) -> dict[str, Any]:
    return {"type": "code", "argv": (sys.executable, "-c", code)}


def asked(member: PlanEvaluator | None = None, prompt: str | FilePart | None = None, **files: Any) -> JudgeQuestion:
    """The question of an aggregating judge."""
    judge = Judge([GOOD])
    part = {"type": "text", "text": prompt} if isinstance(prompt, str) else prompt
    case = plan_case(composite(member or yes(), aggregator={**JUDGE, "prompt": part}))
    found = asyncio.run(evaluate(submission("Hello", case, **files), tools(ask=judge))).results[0]
    assert (found.score, found.hits, found.misses, found.reasoning) == (0.9, ("greets",), ("long",), "in all")
    return judge.asked[0]


def test_members_score_the_same_answer_and_trace() -> None:
    calls = evaluator("tool_trajectory", name="t", mode="any_order", minimums={"greet": 1})
    found = combined(yes(), no(), calls, answer=answered("Hello", ToolCall(tool="greet"), has_trace=True))
    assert members(found) == [("yes", "pass", 1.0), ("no", "fail", 0.0), ("t", "pass", 1.0)]
    assert (found.name, found.type, found.status) == ("all", "composite", "ok")
    assert combined(calls, answer="Hello").status == "error"


def test_member_that_fails_is_an_error_before_anything_is_aggregated() -> None:
    judge = Judge([GOOD])
    also = BREAKS.model_copy(update={"name": "also"})
    found = assess(composite(yes(), BREAKS, also, aggregator=JUDGE), "Hello", tools(ask=judge))
    reason = "the script exited with code 3: nothing"
    assert (found.status, found.score) == ("error", 0.0)
    assert found.reasoning == f"member 'broken': {reason}; member 'also': {reason}"
    assert [verdict for _, verdict, _ in members(found)] == ["pass", "error", "error"]
    assert judge.asked == []


def test_error_stays_an_error_through_negated_levels() -> None:
    found = assess(composite(composite(BREAKS, yes(), name="inner", negate=True), negate=True), "Hello")
    assert (found.verdict, found.score) == ("error", 0.0)
    assert found.reasoning.startswith("member 'inner': member 'broken': the script")


def test_member_without_its_measure_is_ignored_unless_it_is_required() -> None:
    inner = composite(NOT_MEASURED, name="inner", negate=True)
    found = combined(yes(), NOT_MEASURED, inner)
    assert (found.status, found.score) == ("ok", 1.0)
    assert [verdict for _, verdict, _ in members(found)] == ["pass", "skipped", "skipped"]
    required = combined(yes(), NOT_MEASURED.model_copy(update={"required": True}))
    assert (required.status, [verdict for _, verdict, _ in members(required)]) == ("error", ["pass", "error"])


def test_composite_of_missing_measures_is_skipped_or_an_error() -> None:
    found = grade(plan_case(composite(NOT_MEASURED), yes()), "Hello")
    assert found.results[0].status == "skipped"
    assert found.results[0].reasoning == "the target does not report what the members measure"
    assert (found.verdict, found.score) == ("pass", 1.0)
    assert grade(plan_case(composite(NOT_MEASURED)), "Hello").verdict == "error"
    weights = {"type": "weighted_average", "weights": {"yes": 0, "cost": 1}}
    assert combined(yes(), NOT_MEASURED, aggregator=weights).status == "error"


@pytest.mark.parametrize(("aggregator", "score"), [(None, 0.9), (script("print('{\"score\": 1}')"), 1.0), (JUDGE, 0.9)])
def test_required_member_that_does_not_pass_fails_the_case(aggregator: dict[str, Any] | None, score: float) -> None:
    for required, verdict in ((True, "fail"), (False, "pass")):
        settings = composite(yes(weight=9), no(required=required), aggregator=aggregator)
        found = grade(plan_case(settings), "Hello", tools(ask=Judge([GOOD])))
        assert (found.score, found.verdict, found.results[0].verdict) == (score, verdict, verdict)


@pytest.mark.parametrize(
    ("settings", "fails"),
    [
        (composite(composite(no(required=True), name="inner")), True),
        (composite(no(required=True), negate=True), False),
        (composite(composite(no(required=True), name="inner", negate=True)), False),
        (composite(yes(required=True, negate=True)), True),
        (composite(no(required=True, negate=True)), False),
    ],
)
def test_negate_lifts_requirements_inside(settings: PlanEvaluator, fails: bool) -> None:
    assert fails_case(settings, "Hello") is fails


def test_levels_may_be_nested() -> None:
    found = combined(yes(), composite(no("deep"), name="inner"))
    assert [each.name for each in (found.evaluator_results or ())[1].evaluator_results or ()] == ["deep"]
    assert found.misses == ("[inner] [deep] does not contain 'Goodbye'",)
    settings = yes()
    for level in range(50):
        settings = composite(settings, name=f"level-{level}")
    assert assess(settings, "Hello").score == 1.0


@pytest.mark.parametrize(
    ("weights", "score"), [((1, 1), 0.5), ((3, 1), 0.75), ((0, 5), 0.0), ((5, 0), 1.0), ((0, 0), 0.0)]
)
def test_weights_of_the_aggregator_count(weights: tuple[float, float], score: float) -> None:
    aggregator = {"type": "weighted_average", "weights": dict(zip(("yes", "no"), weights, strict=True))}
    assert combined(yes(weight=7), no(), aggregator=aggregator).score == score


def test_findings_and_reasoning_name_their_member() -> None:
    parts = evaluator("contains_all", name="parts", value=["Hello", "Ann"])
    judges = [evaluator("llm_judge", name=name, target="judge") for name in ("a", "b")]
    judge = Judge(['{"score": 1, "reasoning": "good"}', '{"score": 1, "reasoning": "fine"}'])
    found = assess(composite(judges[0], yes(), parts, judges[1]), "Hello", tools(ask=judge))
    assert (found.score, found.reasoning) == (0.875, "a: good; b: fine")
    assert found.hits == ("[yes] contains 'Hello'", "[parts] contains 'Hello'")
    assert found.misses == ("[parts] does not contain 'Ann'",)


def test_judge_gets_the_inputs_and_the_results() -> None:
    question = asked()
    assert question.user.count("<evaluator_results-") == 1
    text = question.user.partition("<evaluator_results-")[2].partition("\n")[2].rpartition("\n")[0]
    assert json.loads(text) == {"yes": {**HIT, "type": "contains", "weight": 1.0}}
    assert "- evaluator_results: " in question.system
    assert question.system.endswith(f"{ONLY_DATA}\n\n{score_contract()}")
    assert assess(composite(yes(), aggregator=JUDGE), "Hello", tools(ask=Judge([question.sample]))).score == 1.0


@pytest.mark.parametrize("name", ["evaluator_results", "EVALUATOR_RESULTS_JSON"])
def test_prompt_may_name_the_results_and_all_other_variables(name: str) -> None:
    question = asked(prompt=f"{{{{ question }}}}|{{{{ expected_outcome }}}}|{{{{ {name} }}}}.")
    assert question.user.startswith(f"Say hello.|It greets.|<{name}-")
    assert question.user.endswith(f"\n</{question.user.split('<')[1].split('>')[0]}>.")
    assert question.user.count(name) == 2


def test_results_follow_a_prompt_that_does_not_name_them() -> None:
    assert "contains 'Hello'" in asked(prompt="Weigh what was found for {{ question }}.").user
    strict = asked(prompt="Be strict.")
    assert (strict.system, strict.user) == (f"Be strict.\n\n{ONLY_DATA}\n\n{score_contract()}", asked().user)


FIVE = '{"score": 1, "hits": ["1", "2", "3", "4", "5"]}'


@pytest.mark.parametrize(
    ("replies", "status", "raw", "questions"),
    [
        (["x", "y", "z", GOOD], "error", "z", 3),
        ([ProviderError("auth", "no key")], "error", None, 1),
        ([FIVE], "ok", FIVE, 1),
    ],
)
def test_judge_is_asked_as_an_evaluator_does(replies: list[Any], status: str, raw: str | None, questions: int) -> None:
    judge = Judge(replies)
    found = assess(composite(yes(), aggregator=JUDGE), "Hello", tools(ask=judge))
    assert (found.status, found.raw_response, len(judge.asked)) == (status, raw, questions)
    assert found.hits == (("1", "2", "3", "4") if status == "ok" else ())
    assert members(found) == [("yes", "pass", 1.0)]
