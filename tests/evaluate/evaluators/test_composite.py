"""`type: composite`, with its three aggregators."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from agentv_ci.contracts.evaluators import (
    ContainsAllEvaluator,
    ContainsEvaluator,
    CostEvaluator,
    EqualsEvaluator,
    ToolTrajectoryEvaluator,
)
from agentv_ci.contracts.exchange import Grade, JudgeQuestion, ProviderError, Response
from agentv_ci.contracts.plan import (
    PlanAggregator,
    PlanCase,
    PlanCodeAggregator,
    PlanCodeEvaluator,
    PlanCompositeEvaluator,
    PlanEvaluator,
    PlanLlmJudgeAggregator,
    PlanLlmJudgeEvaluator,
    PlanRubric,
    PlanRubricEvaluator,
    PlanWeightedAverage,
    TextPart,
)
from agentv_ci.contracts.results import EvaluatorResult, ToolCall
from agentv_ci.evaluate.evaluators import evaluate
from agentv_ci.evaluate.judging import ONLY_DATA, SCORE_CONTRACT
from tests.evaluate.builders import Judge, Texts, answered, assess, fails_case, grade, plan_case, submission, tools

GOOD = '{"score": 0.9, "hits": ["greets"], "misses": ["long"], "reasoning": "in all"}'
BREAKS = PlanCodeEvaluator(name="broken", command="echo nothing; exit 3")
NOT_MEASURED = CostEvaluator(name="cost", type="cost", max_usd=1)
ECHO = """\
import json, sys
print(json.dumps({"score": 0.5, "hits": ["h"], "misses": ["m"], "reasoning": sys.stdin.read()}))
"""


def contains(name: str = "yes", value: str = "Hello", **given: Any) -> ContainsEvaluator:
    return ContainsEvaluator(name=name, type="contains", value=value, **given)


def no(name: str = "no", **given: Any) -> ContainsEvaluator:
    return contains(name, "Goodbye", **given)


def average(*members: PlanEvaluator, **weights: float) -> PlanWeightedAverage:
    return PlanWeightedAverage(weights={each.name: each.weight for each in members} | weights)


def composite(
    *members: PlanEvaluator, aggregator: PlanAggregator | None = None, **given: Any
) -> PlanCompositeEvaluator:
    return PlanCompositeEvaluator(
        **{"name": "all", "evaluators": members, "aggregator": aggregator or average(*members), **given}
    )


def combined(*members: PlanEvaluator, answer: str | Response = "Hello", **given: Any) -> EvaluatorResult:
    return assess(composite(*members, **given), answer)


def script(code: str) -> PlanCodeAggregator:
    return PlanCodeAggregator(argv=(sys.executable, "-c", code))


class TestMembers:
    def test_all_score_the_same_answer_and_stand_in_the_outcome(self) -> None:
        outcome = combined(contains(), no())
        assert [(each.name, each.type, each.score, each.verdict) for each in outcome.evaluator_results or ()] == [
            ("yes", "contains", 1.0, "pass"),
            ("no", "contains", 0.0, "fail"),
        ]
        assert (outcome.name, outcome.type, outcome.status) == ("all", "composite", "ok")

    def test_they_see_the_trace(self) -> None:
        calls = ToolTrajectoryEvaluator(name="t", type="tool_trajectory", mode="any_order", minimums={"greet": 1})
        assert combined(calls, answer=answered("Hello", ToolCall(tool="greet"), has_trace=True)).score == 1.0
        assert combined(calls, answer="Hello").status == "error"

    def test_they_have_their_own_settings(self) -> None:
        outcome = combined(no(negate=True), contains("half", min_score=0.1), NOT_MEASURED)
        assert [(each.score, each.verdict) for each in outcome.evaluator_results or ()] == [
            (1.0, "pass"),
            (1.0, "pass"),
            (0.0, "skipped"),
        ]

    def test_one_that_breaks_is_an_error_of_the_whole_that_names_it(self) -> None:
        second = BREAKS.model_copy(update={"name": "also"})
        outcome = combined(contains(), BREAKS, second)
        reason = "the script exited with code 3: nothing"
        assert (outcome.status, outcome.score, outcome.reasoning) == (
            "error",
            0.0,
            f"member 'broken': {reason}; member 'also': {reason}",
        )
        assert [each.status for each in outcome.evaluator_results or ()] == ["ok", "error", "error"]

    def test_nobody_is_asked_to_aggregate_when_one_breaks(self) -> None:
        judge = Judge([GOOD])
        evaluator = composite(contains(), BREAKS, aggregator=PlanLlmJudgeAggregator(target="judge"))
        assert assess(evaluator, "Hello", tools(ask=judge)).status == "error"
        assert judge.asked == []

    def test_one_whose_measure_is_missing_is_left_out(self) -> None:
        outcome = combined(contains(), NOT_MEASURED)
        assert (outcome.status, outcome.score) == ("ok", 1.0)
        assert [each.status for each in outcome.evaluator_results or ()] == ["ok", "skipped"]

    def test_one_whose_measure_is_missing_and_required_is_an_error(self) -> None:
        outcome = combined(contains(), NOT_MEASURED.model_copy(update={"required": True}))
        assert (outcome.status, [each.status for each in outcome.evaluator_results or ()]) == ("error", ["ok", "error"])

    def test_when_nothing_is_measured_the_whole_is_skipped(self) -> None:
        found = grade(plan_case(composite(NOT_MEASURED), contains()), "Hello")
        outcome = found.results[0]
        assert (outcome.status, outcome.reasoning) == ("skipped", "the target does not report what the members measure")
        assert (found.verdict, found.score) == ("pass", 1.0)

    def test_when_nothing_is_measured_and_nothing_else_scored_it_is_an_error(self) -> None:
        assert grade(plan_case(composite(NOT_MEASURED)), "Hello").verdict == "error"

    @pytest.mark.parametrize(("required", "verdict"), [(True, "fail"), (False, "pass")])
    def test_required_one_that_does_not_pass_fails_the_case(self, required: bool, verdict: str) -> None:
        evaluator = composite(contains(weight=9), no(required=required))
        found = grade(plan_case(evaluator), "Hello")
        assert (found.score, found.verdict, found.results[0].verdict) == (0.9, verdict, verdict)

    def test_required_criterion_of_a_member_fails_the_case_through_two_levels(self) -> None:
        rubric = PlanRubricEvaluator(
            name="r",
            target="judge",
            weight=0,
            rubrics=(PlanRubric(id="a", description="A"), PlanRubric(id="b", description="B")),
        )
        evaluator = composite(contains(), composite(contains(), rubric, name="inner"))
        judge = Judge(['{"checks": [{"id": "a", "satisfied": true}]}'])
        found = grade(plan_case(evaluator), "Hello", tools(ask=judge))
        assert (found.score, found.verdict) == (1.0, "fail")

    def test_what_is_required_inside_a_negated_one_is_no_longer_demanded(self) -> None:
        outcome = combined(no(required=True), negate=True)
        assert (outcome.score, outcome.verdict) == (1.0, "pass")
        assert not fails_case(composite(no(required=True), negate=True), "Hello")

    def test_members_of_members_are_kept(self) -> None:
        outcome = combined(contains(), composite(no("deep"), name="inner"))
        assert [each.name for each in (outcome.evaluator_results or ())[1].evaluator_results or ()] == ["deep"]
        assert outcome.misses == ("[inner] [deep] does not contain 'Goodbye'",)


class TestWeightedAverage:
    @pytest.mark.parametrize(
        ("weights", "score"),
        [({"yes": 1, "no": 1}, 0.5), ({"yes": 3, "no": 1}, 0.75), ({"yes": 0, "no": 5}, 0.0), ({"yes": 5, "no": 0}, 1)],
    )
    def test_weights_of_the_aggregator_count(self, weights: dict[str, float], score: float) -> None:
        assert combined(contains(weight=7), no(), aggregator=PlanWeightedAverage(weights=weights)).score == score

    def test_weights_that_are_all_zero_score_zero(self) -> None:
        assert combined(contains(), aggregator=PlanWeightedAverage(weights={"yes": 0})).score == 0.0

    def test_findings_name_their_member(self) -> None:
        parts = ContainsAllEvaluator(name="parts", type="contains_all", value=("Hello", "Ann"))
        outcome = combined(contains(), parts)
        assert outcome.score == 0.75
        assert outcome.hits == ("[yes] contains 'Hello'", "[parts] contains 'Hello'")
        assert outcome.misses == ("[parts] does not contain 'Ann'",)

    def test_reasoning_names_its_member_and_leaves_out_who_has_none(self) -> None:
        judges = [PlanLlmJudgeEvaluator(name=name, target="judge") for name in ("a", "b")]
        judge = Judge(['{"score": 1, "reasoning": "good"}', '{"score": 1, "reasoning": "fine"}'])
        outcome = assess(composite(judges[0], contains(), judges[1]), "Hello", tools(ask=judge))
        assert outcome.reasoning == "a: good; b: fine"

    def test_negate_turns_the_whole_around(self) -> None:
        outcome = combined(contains(weight=3), no(), negate=True)
        assert (outcome.score, outcome.hits) == (0.25, ("negated: [no] does not contain 'Goodbye'",))
        assert outcome.misses == ("negated: [yes] contains 'Hello'",)


class TestCode:
    def test_script_reads_the_results_of_all_that_scored(self) -> None:
        inner = composite(contains("deep"), name="inner", weight=2)
        outcome = combined(no(required=False), NOT_MEASURED, inner, aggregator=script(ECHO))
        assert (outcome.score, outcome.hits, outcome.misses) == (0.5, ("h",), ("m",))
        hit = {"hits": ["contains 'Hello'"], "misses": [], "reasoning": "", "score": 1.0, "verdict": "pass"}
        assert json.loads(outcome.reasoning) == {
            "eval_id": "one",
            "results": {
                "no": {
                    "type": "contains",
                    "score": 0.0,
                    "weight": 1.0,
                    "verdict": "fail",
                    "hits": [],
                    "misses": ["does not contain 'Goodbye'"],
                    "reasoning": "",
                },
                "inner": {
                    **hit,
                    "type": "composite",
                    "weight": 2.0,
                    "hits": ["[deep] contains 'Hello'"],
                    "results": {"deep": {**hit, "type": "contains", "weight": 1.0}},
                },
            },
        }

    def test_more_than_four_findings_are_kept(self) -> None:
        many = [str(number) for number in range(6)]
        aggregator = script(f"print({json.dumps(json.dumps({'score': 1, 'hits': many}))})")
        assert combined(contains(), aggregator=aggregator).hits == tuple(many)

    def test_script_that_fails_is_an_error_and_the_members_are_kept(self) -> None:
        outcome = combined(contains(), aggregator=PlanCodeAggregator(command="echo part; echo why >&2; exit 2"))
        assert (outcome.status, outcome.reasoning, outcome.raw_response, outcome.stderr) == (
            "error",
            "the script exited with code 2: why",
            "part\n",
            "why",
        )
        assert [each.status for each in outcome.evaluator_results or ()] == ["ok"]

    def test_required_member_fails_the_case_whatever_the_script_says(self) -> None:
        aggregator = script("print('{\"score\": 1}')")
        outcome = combined(no(required=True), aggregator=aggregator)
        assert (outcome.score, outcome.verdict) == (1.0, "fail")
        assert fails_case(composite(no(required=True), aggregator=aggregator), "Hello")


class TestLlmJudge:
    def asked(self, prompt: TextPart | None = None) -> JudgeQuestion:
        judge = Judge([GOOD])
        evaluator = composite(contains(), aggregator=PlanLlmJudgeAggregator(target="judge", prompt=prompt))
        outcome = assess(evaluator, "Hello", tools(ask=judge))
        assert (outcome.score, outcome.hits, outcome.misses, outcome.reasoning) == (
            0.9,
            ("greets",),
            ("long",),
            "in all",
        )
        (question,) = judge.asked
        return question

    def test_judge_is_given_the_inputs_and_the_results(self) -> None:
        question = self.asked()
        assert question.user.count("<evaluator_results-") == 1
        text = question.user.partition("<evaluator_results-")[2].partition("\n")[2].rpartition("\n")[0]
        assert json.loads(text) == {
            "yes": {
                "type": "contains",
                "score": 1.0,
                "weight": 1.0,
                "verdict": "pass",
                "hits": ["contains 'Hello'"],
                "misses": [],
                "reasoning": "",
            }
        }
        assert "- evaluator_results: " in question.system
        assert question.system.endswith(f"{ONLY_DATA}\n\n{SCORE_CONTRACT}")

    @pytest.mark.parametrize("name", ["evaluator_results", "EVALUATOR_RESULTS_JSON"])
    def test_prompt_may_name_the_results_in_both_ways(self, name: str) -> None:
        question = self.asked(TextPart(text=f"Weigh {{{{ {name} }}}}."))
        assert question.user.startswith(f"Weigh <{name}-")
        assert question.user.endswith(f"\n</{question.user.split('<')[1].split('>')[0]}>.")
        assert question.user.count(name) == 2

    def test_prompt_may_name_what_every_prompt_may(self) -> None:
        question = self.asked(TextPart(text="{{ question }}|{{ expected_outcome }}|{{ evaluator_results }}"))
        assert question.user.startswith("Say hello.|It greets.|<evaluator_results-")

    def test_inputs_and_results_follow_a_prompt_without_variables(self) -> None:
        question = self.asked(TextPart(text="Be strict."))
        assert question.system == f"Be strict.\n\n{ONLY_DATA}\n\n{SCORE_CONTRACT}"
        assert question.user == self.asked().user

    def test_prompt_may_stand_in_a_file(self) -> None:
        files, judge = Texts(), Judge([GOOD])
        prompt = files.part("p.md", "Weigh {{ evaluator_results }} of {{ question }}")
        case = plan_case(composite(contains(), aggregator=PlanLlmJudgeAggregator(target="judge", prompt=prompt)))
        assert graded_with_files(case, files, judge).verdict == "pass"
        assert judge.asked[0].user.endswith("of Say hello.")

    def test_sample_that_a_mock_gives_can_be_read(self) -> None:
        evaluator = composite(contains(), aggregator=PlanLlmJudgeAggregator(target="judge"))
        assert assess(evaluator, "Hello", tools(ask=Judge([self.asked().sample]))).score == 1.0

    def test_judge_is_asked_again_twice(self) -> None:
        judge = Judge(["x", "y", "z", GOOD])
        evaluator = composite(contains(), aggregator=PlanLlmJudgeAggregator(target="judge"))
        outcome = assess(evaluator, "Hello", tools(ask=judge))
        assert (outcome.status, outcome.raw_response, len(judge.asked)) == ("error", "z", 3)
        assert [each.status for each in outcome.evaluator_results or ()] == ["ok"]

    def test_judge_that_cannot_be_asked_is_an_error_and_the_members_are_kept(self) -> None:
        evaluator = composite(contains(), aggregator=PlanLlmJudgeAggregator(target="judge"))
        outcome = assess(evaluator, "Hello", tools(ask=Judge([ProviderError("auth", "no key")])))
        assert (outcome.status, outcome.reasoning) == ("error", "judge 'judge': auth: no key")
        assert [each.name for each in outcome.evaluator_results or ()] == ["yes"]

    def test_at_most_four_findings_are_kept(self) -> None:
        reply = json.dumps({"score": 1, "hits": ["1", "2", "3", "4", "5"]})
        evaluator = composite(contains(), aggregator=PlanLlmJudgeAggregator(target="judge"))
        assert assess(evaluator, "Hello", tools(ask=Judge([reply]))).hits == ("1", "2", "3", "4")

    def test_required_member_fails_the_case_whatever_the_judge_says(self) -> None:
        evaluator = composite(
            EqualsEvaluator(name="e", type="equals", value="Goodbye", required=True),
            aggregator=PlanLlmJudgeAggregator(target="judge"),
        )
        outcome = assess(evaluator, "Hello", tools(ask=Judge([GOOD])))
        assert (outcome.score, outcome.verdict) == (0.9, "fail")
        assert fails_case(evaluator, "Hello", tools(ask=Judge([GOOD])))


def graded_with_files(case: PlanCase, files: Texts, judge: Judge) -> Grade:
    return asyncio.run(evaluate(submission("Hello", case, files=files.by_digest), tools(ask=judge)))
