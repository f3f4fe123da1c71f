"""Which of two answers a judge prefers, in both orders."""

from __future__ import annotations

import json

import pytest

from agentv_ci.analysis.preferences import Judged, outcome_of, preference_pairs, preferences
from agentv_ci.contracts.exchange import Choice, Preference, ProviderError
from agentv_ci.contracts.plan import PlanPairwiseJudgeEvaluator
from agentv_ci.evaluate.preferring import prefer
from tests.evaluate.builders import Judge, plan_case, submission, tools

SETTINGS = PlanPairwiseJudgeEvaluator(name="better", target="judge", judge_retries=1, temperature=0.0)


def choosing(choice: str) -> str:
    return json.dumps({"better": choice, "reasoning": f"the {choice}"})


async def preferred(*replies: str | ProviderError) -> tuple[Preference, Judge]:
    judge, one = Judge(replies), plan_case()
    found = await prefer(SETTINGS, submission("Alpha", one), submission("Omega", one), tools(ask=judge))
    return found, judge


async def test_both_orders_are_asked_without_the_names_of_arms() -> None:
    found, judge = await preferred(choosing("second"), choosing("first"))
    assert found == Preference("second", "first", "the second | the first", judge="judge")
    for question, order in zip(judge.asked, (("Alpha", "Omega"), ("Omega", "Alpha")), strict=True):
        first, second = question.user.index(order[0]), question.user.index(order[1])
        assert first < second
        assert question.temperature == 0
    assert judge.targets == ["judge", "judge"]


async def test_a_judge_that_fails_once_says_nothing() -> None:
    found, _ = await preferred(choosing("second"), ProviderError("server", "down"))
    assert (found.error, outcome_of(found)) == ("judge 'judge': server: down", "error")
    unreadable, _ = await preferred("I like both", choosing("tie"), choosing("both"), choosing("neither"))
    assert unreadable.error is not None


@pytest.mark.parametrize(
    ("base_first", "head_first", "outcome"),
    [
        ("second", "first", "win"),
        ("first", "second", "loss"),
        ("first", "first", "tie"),
        ("second", "second", "tie"),
        ("tie", "first", "tie"),
        ("second", "tie", "tie"),
        ("tie", "tie", "tie"),
    ],
)
def test_an_answer_is_better_if_it_is_chosen_in_both_orders(
    base_first: Choice, head_first: Choice, outcome: str
) -> None:
    assert outcome_of(Preference(base_first, head_first)) == outcome


def test_preferences_are_counted_with_the_bias_to_a_position() -> None:
    known = [
        Preference("second", "first"),
        Preference("second", "first"),
        Preference("first", "second"),
        Preference("first", "first"),
        Preference("tie", "first"),
        Preference(error="down"),
    ]
    judged = [Judged(f"c{number}", f"c{number}", 1, each) for number, each in enumerate(known)]
    for order in (judged, judged[::-1]):
        found = preferences(order)
        assert (found.wins, found.ties, found.losses, found.errors) == (2, 2, 1, 1)
        assert (found.contradictions, found.chose_first) == (1, 6 / 9)
    assert [each.head for each in preference_pairs(judged)] == [1.0, 1.0, -1.0, 0.0, 0.0]
    assert preferences([]).chose_first is None
