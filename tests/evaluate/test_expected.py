"""An expected value that has a secret is an error: answers have it masked, so that no verdict would be right."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from msgspec.structs import replace

from agentv_ci.base.redaction import MASK, Redactor
from agentv_ci.contracts.exchange import Grade
from agentv_ci.contracts.plan_evaluators import PlanEvaluator
from agentv_ci.evaluate.evaluators import evaluate
from agentv_ci.evaluate.submission import EvaluatorServices
from tests.evaluate.builders import Judge, answered, evaluator, plan_case, submission, tools

SECRET = "sk-Canary.0123"
REDACTOR = Redactor([SECRET])
FIELDS = [{"path": "key"}]
RUBRICS = [{"id": "key", "description": f"Says {SECRET}"}]


def services(*replies: str) -> EvaluatorServices:
    means = tools(ask=Judge(replies))
    means.clean, means.hides, means.hides_match = REDACTOR.result, REDACTOR.hides, REDACTOR.hides_match
    return means


async def graded(by: PlanEvaluator, answer: str, *replies: str, reference: str = "Hello!") -> Grade:
    response = REDACTOR.response(answered(answer))
    return await evaluate(submission(response, plan_case(by, reference_answer=reference)), services(*replies))


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("answer", [f"It is {SECRET}", json.dumps({"key": SECRET}), "nothing"])
@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("contains", {"value": SECRET}),
        ("contains", {"value": SECRET.upper(), "case_sensitive": False}),
        ("contains_any", {"value": ["other", SECRET]}),
        ("contains_all", {"value": ["other", SECRET]}),
        ("equals", {"value": f"It is {SECRET}"}),
        ("starts_with", {"value": f"It is {SECRET}"}),
        ("ends_with", {"value": SECRET}),
        ("regex", {"value": SECRET}),
        ("regex", {"value": f"^It is {re.escape(SECRET)}$"}),
        ("similarity", {"metric": "rouge_l", "reference": SECRET}),
        ("field_accuracy", {"fields": FIELDS, "reference": {"key": SECRET}}),
        ("field_accuracy", {"fields": FIELDS, "reference": {"key": {"inner": [SECRET]}}}),
        ("schema", {"schema": {"properties": {"key": {"const": SECRET}}}, "format": "json"}),
        ("schema", {"schema": {"properties": {"key": {"enum": ["a", SECRET]}}}, "format": "json"}),
        ("tool_trajectory", {"mode": "superset", "expected": [{"tool": "open", "input": {"key": SECRET}}]}),
        ("rubric", {"target": "judge", "rubrics": RUBRICS}),
    ],
)
async def test_expected_value_with_a_secret_is_an_error(
    kind: str, given: dict[str, Any], answer: str, negate: bool
) -> None:
    grade = await graded(evaluator(kind, negate=negate, **given), answer)
    (result,) = grade.results
    assert (grade.verdict, result.status) == ("error", "error")
    assert result.reasoning == "it compares with a value that has a secret, which is masked in answers"
    assert SECRET not in repr(grade)


@pytest.mark.parametrize(
    "by",
    [
        evaluator("similarity", metric="levenshtein"),
        evaluator("field_accuracy", fields=FIELDS),
        evaluator("llm_judge", target="judge"),
    ],
)
async def test_reference_answer_with_a_secret_is_an_error(by: PlanEvaluator) -> None:
    grade = await graded(by, "Hello", '{"score": 1}', reference=json.dumps({"key": SECRET}))
    assert (grade.verdict, grade.results[0].status) == ("error", "error")


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(
    ("kind", "value", "answer", "status"),
    [
        ("contains", "Canary", f"It is {SECRET}", "error"),
        ("contains", "Canary", f"It is {SECRET}, a Canary", "ok"),
        ("contains", "Canary", "nothing", "ok"),
        ("contains", "sk-", f"It is {SECRET}", "ok"),
        ("contains", "budgie", f"It is {SECRET}", "ok"),
        ("contains_all", ["Canary", "It is"], f"It is {SECRET}", "error"),
        ("regex", r"sk-\w+", f"It is {SECRET}", "error"),
        ("regex", r"sk-\w+", f"It is {SECRET} and sk-ip", "ok"),
        ("regex", r"sk-\w+", "nothing", "ok"),
        ("regex", r"budgie", f"It is {SECRET}", "ok"),
    ],
)
async def test_missing_text_that_may_be_part_of_a_masked_secret_is_an_error(
    kind: str, value: Any, answer: str, status: str, negate: bool
) -> None:
    grade = await graded(evaluator(kind, value=value, negate=negate), answer)
    assert grade.results[0].status == status


async def test_result_says_that_it_compared_a_masked_answer() -> None:
    by = evaluator("contains", value="It is")
    for answer, is_masked in ((f"It is {SECRET}", True), ("It is", False)):
        (result,) = (await graded(by, answer)).results
        assert (result.verdict, result.compared_masked) == ("pass", is_masked)
        assert ("compared_masked" in result.model_dump()) is is_masked
    (limit,) = (await graded(evaluator("tool_calls", max=1), f"It is {SECRET}")).results
    assert not limit.compared_masked


async def test_judges_get_masked_answers() -> None:
    judge = Judge(['{"score": 1}'])
    means = replace(services(), ask=judge)
    response = REDACTOR.response(answered(f"It is {SECRET}"))
    await evaluate(submission(response, plan_case(evaluator("llm_judge", target="judge"))), means)
    assert f"It is {MASK}" in judge.asked[0].user
    assert SECRET not in judge.asked[0].user
