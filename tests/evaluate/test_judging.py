"""Asking judges until they can be understood, and keeping count of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.evaluators import ContainsEvaluator
from agentv_ci.contracts.exchange import Grade, JudgeQuestion, ProviderError, Response, Score
from agentv_ci.contracts.plan import (
    PlanCompositeEvaluator,
    PlanEvaluator,
    PlanLlmJudgeAggregator,
    PlanLlmJudgeEvaluator,
    PlanRubric,
    PlanRubricEvaluator,
)
from agentv_ci.contracts.results import OutputMessage, Usage
from agentv_ci.evaluate.judging import judge_score
from tests.evaluate.builders import Judge, grade, plan_case, tools

QUESTION = JudgeQuestion("system", "user", "{}", temperature=0.5, max_output_tokens=7)
AGAIN = "Your last reply was not the JSON object that is asked for. Reply with that object and nothing else."


def read(reply: JsonObject) -> Score | None:
    """Only a reply with `ok` can be read."""
    return Score(1.0, reasoning=str(reply["ok"])) if "ok" in reply else None


def score(judge: Judge, *, retries: int = 2) -> tuple[Score, list[str]]:
    told: list[str] = []
    services = tools(ask=judge, log=told.append)
    return asyncio.run(judge_score(services, "judge", QUESTION, read, retries=retries, label="case: name")), told


def test_first_readable_reply_is_the_score() -> None:
    judge = Judge(['{"ok": 1}', '{"ok": 2}'])
    assert score(judge) == (Score(1.0, reasoning="1", raw_response='{"ok": 1}'), [])
    assert (judge.targets, judge.asked) == (["judge"], [QUESTION])


@pytest.mark.parametrize("reply", ["", "no JSON", "[1]", "{}", '{"no": 1}', '{"no": {"ok": 1}}', '{"ok": 1'])
def test_judge_is_asked_again_when_the_reply_cannot_be_read(reply: str) -> None:
    judge = Judge([reply, '{"ok": 2}'])
    found, told = score(judge)
    assert found == Score(1.0, reasoning="2", raw_response='{"ok": 2}')
    assert told == [f"case: name: unreadable reply 1: {reply!r}"]


def test_only_the_first_object_is_offered() -> None:
    assert score(Judge(['{"no": 1} {"ok": 1}']), retries=0)[0].error is not None


def test_every_repeated_question_is_the_first_one_with_one_reminder() -> None:
    judge = Judge(["x", "y", '{"ok": 1}'])
    score(judge)
    repeated = replace(QUESTION, user=f"user\n\n{AGAIN}")
    assert judge.asked == [QUESTION, repeated, repeated]


@pytest.mark.parametrize(("retries", "tries"), [(0, "1 try"), (1, "2 tries"), (4, "5 tries")])
def test_error_tells_how_often_was_asked_and_keeps_the_last_reply(retries: int, tries: str) -> None:
    replies = [str(number) for number in range(retries + 1)]
    found, told = score(Judge(replies), retries=retries)
    assert found == Score(
        error=f"judge 'judge' did not reply in the required form in {tries}; its last reply is '{replies[-1]}'",
        raw_response=replies[-1],
    )
    assert len(told) == retries + 1


@pytest.mark.parametrize(
    ("before", "raw"), [([], None), (["unreadable"], "unreadable"), (["a", "b"], "b"), ([""], None)]
)
def test_judge_that_fails_is_asked_no_more_and_keeps_what_it_said_before(before: list[str], raw: str | None) -> None:
    judge = Judge([*before, ProviderError("server", "gone"), '{"ok": 1}'])
    found, _ = score(judge)
    assert found == Score(error="judge 'judge': server: gone", raw_response=raw)
    assert len(judge.asked) == len(before) + 1


class Priced:
    """A judge whose replies say what they cost; see Ask."""

    def __init__(self, costs: Sequence[float | None], reply: str = '{"score": 1}') -> None:
        self.costs = list(costs)
        self.reply = reply

    async def __call__(self, target: str, question: JudgeQuestion) -> Response:
        cost = self.costs.pop(0)
        return Response(
            self.reply,
            (OutputMessage(role="assistant", content=self.reply),),
            has_trace=False,
            cost_usd=cost,
            usage=Usage(input_tokens=1, output_tokens=1, total_tokens=2),
        )


def judge(name: str = "j") -> PlanLlmJudgeEvaluator:
    return PlanLlmJudgeEvaluator(name=name, target="judge")


def graded(ask: Priced, *evaluators: PlanEvaluator) -> Grade:
    return grade(plan_case(*evaluators), "Hello", tools(ask=ask))


@pytest.mark.parametrize(
    ("costs", "total"),
    [([0.1], 0.1), ([0.1, 0.2, 0.3], 0.6), ([0.0, 0.0], 0.0), ([None], None), ([0.1, None], None), ([None, 0.1], None)],
)
def test_cost_is_summed_and_unknown_when_one_of_them_is(costs: list[float | None], total: float | None) -> None:
    found = graded(Priced(costs), *(judge(f"j{number}") for number in range(len(costs)))).judge_cost_usd
    assert found == (None if total is None else pytest.approx(total))


def test_nothing_is_counted_when_nobody_judges() -> None:
    found = graded(Priced([]), ContainsEvaluator(name="c", type="contains", value="x"))
    assert (found.judge_cost_usd, found.judge_usage) == (None, None)


def test_unreadable_replies_cost_too() -> None:
    found = graded(Priced([0.1, 0.1, 0.1], reply="unreadable"), judge())
    assert (found.verdict, found.judge_usage) == ("error", Usage(input_tokens=3, output_tokens=3, total_tokens=6))
    assert found.judge_cost_usd == pytest.approx(0.3)


def test_judges_inside_combinations_and_their_aggregators_are_counted() -> None:
    reply = '{"score": 1, "checks": [{"id": "a", "satisfied": true}]}'
    combined = PlanCompositeEvaluator(
        name="together",
        evaluators=(
            judge(),
            PlanRubricEvaluator(name="r", target="judge", rubrics=(PlanRubric(id="a", description="d"),)),
        ),
        aggregator=PlanLlmJudgeAggregator(target="judge"),
    )
    found = graded(Priced([0.25] * 4, reply), combined, judge("beside"))
    assert (found.verdict, found.judge_cost_usd, found.judge_usage) == (
        "pass",
        1.0,
        Usage(input_tokens=4, output_tokens=4, total_tokens=8),
    )
