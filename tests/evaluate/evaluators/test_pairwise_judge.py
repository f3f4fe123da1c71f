"""`pairwise_judge`: an answer is better than another one if a judge prefers it in both orders."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from agentv_ci.base.canonical import digest_of
from agentv_ci.contracts.exchange import Grade, ProviderError
from agentv_ci.contracts.results import Choice, Outcome, Preference
from agentv_ci.evaluate.evaluators import evaluate
from agentv_ci.evaluate.submission import OtherArms
from tests.evaluate.builders import Judge, evaluator, plan_case, submission, tools

BETTER = evaluator("pairwise_judge", name="better", base="now", target="judge", judge_retries=1, temperature=0.0)
PASSES = evaluator("contains", value="Alpha")


def choosing(choice: str) -> str:
    return json.dumps({"better": choice, "reasoning": f"the {choice}"})


async def graded(other_arms: OtherArms | str | None, *replies: str | ProviderError) -> tuple[Grade, Judge]:
    judge = Judge(replies)
    answer = replace(submission("Alpha", plan_case(PASSES, BETTER)), other_arms=other_arms)
    return await evaluate(answer, tools(ask=judge)), judge


def against(*answers: str) -> OtherArms:
    return OtherArms("Greet me.", {f"arm-{number}": each for number, each in enumerate(answers)})


async def test_both_orders_are_asked_without_names_of_arms() -> None:
    grade, judge = await graded(against("Omega"), choosing("first"), choosing("second"))
    result = grade.results[1]
    digests = {"own_answer": digest_of("Alpha"), "answer": digest_of("Omega")}
    assert result.preferences == (Preference(arm="arm-0", own_first="first", other_first="second", **digests),)
    assert result.raw_response == f"{choosing('first')}\n{choosing('second')}"
    assert (result.score, result.reasoning) == (1.0, "win against 'arm-0': the first / the second")
    for question, order in zip(judge.asked, (("Alpha", "Omega"), ("Omega", "Alpha")), strict=True):
        places = [question.user.index(each) for each in ("Greet me.", *order)]
        assert places == sorted(places)
        assert "arm-" not in question.user
        assert "Say hello." not in question.user  # what the base was asked is shown, whichever arm answers later
        assert question.temperature == 0
    assert judge.targets == ["judge", "judge"]


@pytest.mark.parametrize(
    ("own_first", "other_first", "outcome", "score"),
    [
        ("first", "second", "win", 1.0),
        ("second", "first", "loss", 0.0),
        ("first", "first", "tie", 0.5),
        ("second", "second", "tie", 0.5),
        ("tie", "second", "tie", 0.5),
        ("first", "tie", "tie", 0.5),
        ("tie", "tie", "tie", 0.5),
    ],
)
async def test_answer_is_better_if_it_is_preferred_in_both_orders(
    own_first: Choice, other_first: Choice, outcome: Outcome, score: float
) -> None:
    grade, _ = await graded(against("Omega"), choosing(own_first), choosing(other_first))
    assert grade.results[1].preferences is not None
    (found,) = grade.results[1].preferences
    assert (found.outcome, grade.results[1].score) == (outcome, score)
    assert found.is_contradiction == (own_first == other_first != "tie")
    # It never decides about the case.
    assert (grade.verdict, grade.score, grade.results[1].verdict) == ("pass", 1.0, "pass")


async def test_several_arms_are_compared_one_by_one() -> None:
    grade, judge = await graded(against("Omega", "Psi"), *map(choosing, ("first", "second", "second", "first")))
    assert [each.outcome for each in grade.results[1].preferences or ()] == ["win", "loss"]
    assert (grade.results[1].score, len(judge.asked)) == (0.5, 4)


async def test_equal_answers_are_a_tie_without_a_question() -> None:
    grade, judge = await graded(against("Alpha"))
    assert [each.outcome for each in grade.results[1].preferences or ()] == ["tie"]
    assert (grade.results[1].reasoning, judge.asked) == ("tie against 'arm-0': the answers are equal", [])


async def test_first_answer_is_compared_later() -> None:
    grade, judge = await graded(None)
    assert (grade.verdict, grade.score, judge.asked) == ("pass", 1.0, [])
    assert (grade.results[1].status, grade.results[1].preferences) == ("skipped", None)


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ((choosing("first"), ProviderError("server", "down")), "judge 'judge': server: down"),
        (("both", choosing("tie"), choosing("both"), "{}"), "did not reply in the required form in 2 tries"),
    ],
)
async def test_failed_comparison_is_an_error_of_the_comparison_alone(
    replies: tuple[str | ProviderError, ...], reason: str
) -> None:
    grade, _ = await graded(against("Omega"), *replies)
    assert (grade.verdict, grade.score, grade.error) == ("pass", 1.0, None)
    assert (grade.results[1].status, grade.results[1].preferences) == ("error", None)
    assert "against 'arm-0': " in grade.results[1].reasoning
    assert reason in grade.results[1].reasoning


async def test_question_that_cannot_be_read_is_an_error() -> None:
    grade, judge = await graded("the disk is full")
    assert (grade.verdict, grade.results[1].reasoning, judge.asked) == ("pass", "the disk is full", [])
    assert grade.results[1].is_unjudged


async def test_failed_comparison_leaves_those_with_other_arms() -> None:
    grade, _ = await graded(against("Omega", "Psi"), "?", "?", *map(choosing, ("second", "first", "second")))
    assert grade.results[1].status == "error"
    assert [each.arm for each in grade.results[1].preferences or ()] == ["arm-1"]


async def test_comparison_does_not_make_up_for_evaluators_that_do_not_score() -> None:
    silent = plan_case(evaluator("latency", max_ms=100), BETTER)
    for other_arms, replies in ((None, ()), (against("Omega"), (choosing("first"), choosing("second")))):
        answer = replace(submission("Alpha", silent), other_arms=other_arms)
        grade = await evaluate(answer, tools(ask=Judge(replies)))
        assert (grade.verdict, grade.error) == (
            "error",
            "evaluator 'latency': the target does not report the response time",
        )


async def test_contradictory_choice_counts_with_a_mark() -> None:
    both = f"{choosing('first')} {choosing('second')}"
    judge = Judge([both, both, choosing("second")])
    warnings: list[str] = []
    answer = replace(submission("Alpha", plan_case(PASSES, BETTER)), other_arms=against("Omega"))
    grade = await evaluate(answer, tools(ask=judge, warn=warnings.append))
    result = grade.results[1]
    assert (result.score, result.breaks_contract, len(warnings)) == (1.0, True, 1)
    assert result.preferences is not None
    assert (result.preferences[0].own_first, result.preferences[0].other_first) == ("first", "second")
