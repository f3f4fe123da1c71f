"""`type: rubric`, and `llm_judge` with criteria."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentv_ci.contracts.evaluators import ContainsEvaluator
from agentv_ci.contracts.exchange import JudgeQuestion, ProviderError
from agentv_ci.contracts.plan import PlanLlmJudgeEvaluator, PlanRubric, PlanRubricEvaluator, TextPart
from agentv_ci.contracts.results import EvaluatorResult
from agentv_ci.evaluate.judging import CHECKS_CONTRACT, ONLY_DATA, seal_of, sections, variables
from tests.evaluate.builders import Judge, assess, fails_case, grade, plan_case, submission, tools

POLITE = PlanRubric(id="polite", description="Is polite")
WINDOW = PlanRubric(id="window", description="Names the\n  window", weight=3, required=False)
RUBRICS = (POLITE, WINDOW)

LISTED = "[polite] Is polite\n[window] Names the window"
VALUES = {**variables(submission("Hello, you!")), "criteria": LISTED}
NAMES = ("expected_outcome", "request", "reference_answer", "generated_answer", "criteria")
INPUTS = sections(VALUES, NAMES, seal_of({name: VALUES[name] for name in NAMES}))


def reply(**satisfied: bool) -> str:
    checks = [{"id": name, "satisfied": value, "reasoning": "so"} for name, value in satisfied.items()]
    return json.dumps({"checks": checks, "overall_reasoning": "fine"})


GOOD = reply(polite=True, window=True)


def rubric(**given: Any) -> PlanRubricEvaluator:
    return PlanRubricEvaluator(**{"name": "r", "target": "judge", "rubrics": RUBRICS, **given})


def checked(judge: Judge, **given: Any) -> EvaluatorResult:
    return assess(rubric(**given), "Hello, you!", tools(ask=judge))


def asked(judge: Judge, **given: Any) -> JudgeQuestion:
    """What a judge with a prompt of its own and criteria is asked."""
    evaluator = PlanLlmJudgeEvaluator(name="j", target="judge", rubrics=RUBRICS, **given)
    assess(evaluator, "Hello, you!", tools(ask=judge))
    return judge.asked[0]


def test_score_and_findings_are_those_of_the_criteria() -> None:
    assert checked(Judge([reply(polite=True, window=False)])) == EvaluatorResult(
        name="r",
        type="rubric",
        status="ok",
        score=0.25,
        weight=1.0,
        required=False,
        verdict="fail",
        hits=("[polite] Is polite: so",),
        misses=("[window] Names the\n  window: so",),
        reasoning="fine",
        raw_response=reply(polite=True, window=False),
    )


def test_judge_is_given_all_inputs_and_the_criteria() -> None:
    judge = Judge([GOOD])
    checked(judge)
    (question,) = judge.asked
    assert judge.targets == ["judge"]
    assert question.user == INPUTS
    assert question.system.endswith(f"{ONLY_DATA}\n\n{CHECKS_CONTRACT}")
    for name in ("expected_outcome", "request", "reference_answer", "generated_answer", "criteria"):
        assert f"- {name}: " in question.system
    assert (question.temperature, question.max_output_tokens) == (None, None)


def test_sample_that_a_mock_gives_meets_every_criterion() -> None:
    judge = Judge([GOOD])
    checked(judge)
    assert checked(Judge([judge.asked[0].sample])).score == 1.0


@pytest.mark.parametrize(
    ("answers", "score", "verdict", "case_verdict"),
    [
        (reply(polite=True, window=True), 1.0, "pass", "pass"),
        (reply(polite=False, window=True), 0.75, "fail", "fail"),
        (reply(window=True), 0.75, "fail", "fail"),
    ],
)
def test_required_criterion_that_is_missed_fails_evaluator_and_case_and_leaves_the_score(
    answers: str, score: float, verdict: str, case_verdict: str
) -> None:
    found = grade(plan_case(rubric(min_score=0.5), threshold=0.5), "Hello", tools(ask=Judge([answers])))
    (outcome,) = found.results
    assert (outcome.score, outcome.verdict, found.score, found.verdict) == (score, verdict, score, case_verdict)


def test_required_criterion_fails_the_case_however_little_the_evaluator_weighs() -> None:
    case = plan_case(rubric(weight=0), ContainsEvaluator(name="c", type="contains", value="Hello"))
    found = grade(case, "Hello", tools(ask=Judge([reply(window=True)])))
    assert (found.score, found.verdict) == (1.0, "fail")


def test_negated_criteria_are_no_longer_required() -> None:
    judge = Judge([reply(polite=False, window=False)] * 2)
    outcome = checked(judge, negate=True)
    assert (outcome.score, outcome.verdict) == (1.0, "pass")
    assert not fails_case(rubric(negate=True), "Hello", tools(ask=judge))
    assert outcome.hits == ("negated: [polite] Is polite: so", "negated: [window] Names the\n  window: so")
    assert outcome.misses == ()


@pytest.mark.parametrize(
    ("replies", "retries", "questions", "status"),
    [
        ([GOOD], 2, 1, "ok"),
        (['{"score": 1.0}', GOOD], 2, 2, "ok"),
        (['{"checks": []}', '{"checks": [{"id": "polite", "satisfied": null}]}', GOOD], 2, 3, "ok"),
        (["none", "none", "none", GOOD], 2, 3, "error"),
        (["none", GOOD], 0, 1, "error"),
    ],
)
def test_judge_is_asked_again_while_its_checks_are_unreadable(
    replies: list[str], retries: int, questions: int, status: str
) -> None:
    judge = Judge(replies)
    outcome = checked(judge, judge_retries=retries)
    assert (len(judge.asked), outcome.status) == (questions, status)


def test_unreadable_checks_are_an_error_with_the_raw_response_in_the_end() -> None:
    outcome = checked(Judge(["one", "two", '{"score": 1.0}']))
    assert (outcome.status, outcome.score, outcome.raw_response, outcome.hits) == ("error", 0.0, '{"score": 1.0}', ())


def test_judge_that_cannot_be_asked_is_an_error() -> None:
    outcome = checked(Judge([ProviderError("timeout", "no answer")]))
    assert (outcome.status, outcome.reasoning) == ("error", "judge 'judge': timeout: no answer")


def test_judge_with_criteria_reads_checks_and_no_score() -> None:
    evaluator = PlanLlmJudgeEvaluator(name="j", target="judge", rubrics=RUBRICS)
    judge = Judge(['{"score": 1.0}', reply(polite=True, window=False)])
    outcome = assess(evaluator, "Hello, you!", tools(ask=judge))
    assert (outcome.type, outcome.score, len(judge.asked)) == ("llm_judge", 0.25, 2)


def test_judge_with_criteria_asks_as_the_rubric_does() -> None:
    judge = Judge([GOOD])
    checked(judge)
    assert asked(Judge([GOOD])) == judge.asked[0]


def test_settings_go_to_the_judge_with_criteria_too() -> None:
    question = asked(Judge([GOOD]), temperature=0.0, max_output_tokens=9)
    assert (question.temperature, question.max_output_tokens) == (0.0, 9)


def test_criteria_follow_a_prompt_with_variables_that_cannot_name_them() -> None:
    question = asked(Judge([GOOD]), prompt=TextPart(text="Go through {{ candidate_answer }} {{ criteria }}"))
    answer, criteria = (sections(VALUES, [name], seal_of(VALUES)) for name in ("candidate_answer", "criteria"))
    assert question.user == f"Go through {answer} {{{{ criteria }}}}\n\n{criteria}"
    assert question.system.endswith(CHECKS_CONTRACT)


def test_inputs_and_criteria_follow_a_prompt_without_variables() -> None:
    question = asked(Judge([GOOD]), prompt=TextPart(text="Be strict."))
    assert (question.user, question.system) == (INPUTS, f"Be strict.\n\n{ONLY_DATA}\n\n{CHECKS_CONTRACT}")
