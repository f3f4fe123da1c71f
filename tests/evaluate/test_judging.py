"""Judges are asked until a reply can be read, and their tokens and costs are counted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.exchange import Grade, JudgeQuestion, ProviderError, Response, Score
from agentv_ci.contracts.plan_evaluators import PlanEvaluator
from agentv_ci.contracts.results import Usage
from agentv_ci.evaluate.evaluators import evaluate
from agentv_ci.evaluate.judging import judge_score
from agentv_ci.evaluate.replies import Reading
from tests.evaluate.builders import Judge, evaluator, grade, plan_case, submission, tools

QUESTION = JudgeQuestion("system", "user", "{}", temperature=0.5, max_output_tokens=7)
AGAIN = "Your last reply was not the JSON object that is asked for. Reply with that object and nothing else."


def read(reply: JsonObject) -> Reading | None:
    return Reading(Score(1.0, reasoning=str(reply["ok"])), decides=str(reply["ok"])) if "ok" in reply else None


def score(judge: Judge, *, retries: int = 2) -> tuple[Score, list[str]]:
    log: list[str] = []
    services = tools(ask=judge, log=log.append)
    return asyncio.run(judge_score(services, "judge", QUESTION, read, retries=retries, label="case: name")), log


def test_first_readable_reply_is_the_score() -> None:
    judge = Judge(['{"ok": 1}', '{"ok": 2}'])
    assert score(judge) == (
        Score(1.0, reasoning="1", judge="judge", judge_prompt="system\n\nuser", raw_response='{"ok": 1}'),
        [],
    )
    assert (judge.targets, judge.asked) == (["judge"], [QUESTION])


@pytest.mark.parametrize("reply", ["", "no JSON", "[1]", "{}", '{"no": {"ok": 1}}', '{"ok": 1', '{"no": 1} {"ok": 1}'])
def test_question_is_repeated_with_a_reminder(reply: str) -> None:
    judge = Judge([reply, reply, '{"ok": 2}'])
    found, log = score(judge)
    assert found == Score(1.0, reasoning="2", judge="judge", judge_prompt="system\n\nuser", raw_response='{"ok": 2}')
    assert log == [f"case: name: unreadable reply {number}: {reply!r}" for number in (1, 2)]
    repeated = replace(QUESTION, user=f"user\n\n{AGAIN}")
    assert judge.asked == [QUESTION, repeated, repeated]


TWO = '{"ok": 1} or {"ok": 2}'
TWICE = '{"ok": 1, "ok": 1}'


@pytest.mark.parametrize(
    ("replies", "reasoning"),
    [
        ([TWO, '{"ok": 3}'], "3"),
        ([TWICE, '{"ok": 3}'], "3"),
        ([TWO, "no", '{"ok": 3}'], "3"),
        (['{"ok": 3} {"no": 1} {"ok": 3}'], "3"),
        (['{"ok": 3} {"ok": 4, no}'], "3"),
    ],
)
def test_question_is_repeated_while_the_reply_contradicts_itself(replies: list[str], reasoning: str) -> None:
    judge = Judge(replies)
    found, log = score(judge)
    assert (found.reasoning, found.broken_contract) == (reasoning, None)
    assert len(judge.asked) == len(replies) == len(log) + 1


@pytest.mark.parametrize(
    ("reply", "why"), [(TWO, "it has several verdicts that differ"), (TWICE, "a key occurs twice in it")]
)
def test_reminder_says_what_was_wrong(reply: str, why: str) -> None:
    judge = Judge([reply, '{"ok": 3}'])
    score(judge)
    assert judge.asked[1].user == f"user\n\n{AGAIN.replace('. Reply', f': {why}. Reply')}"


def test_first_verdict_of_the_last_reply_counts_with_a_mark() -> None:
    found, log = score(Judge(["no", TWO]), retries=1)
    assert (found.reasoning, found.error, found.raw_response) == ("1", None, TWO)
    assert found.broken_contract == (
        "the judge broke the contract of its reply: it has several verdicts that differ; its first verdict counts"
    )
    assert log == ["case: name: unreadable reply 1: 'no'", f"case: name: contradictory reply 2: {TWO!r}"][:1]


def test_key_that_stays_twice_is_an_error() -> None:
    found, _ = score(Judge([TWO, TWICE]), retries=1)
    assert found.error == (
        "judge 'judge' did not reply in the required form in 2 tries; its last reply is "
        f"'{TWICE}': a key occurs twice in it"
    )


@pytest.mark.parametrize(
    ("replies", "tries", "last"),
    [
        (["none"], "1 try", "'none'"),
        (["a", " "], "2 tries", "empty"),
        (["a", "b", "c\n d"], "3 tries", "'c d'"),
        (["x" * 90], "1 try", f"'{'x' * 32} … {'x' * 45}'"),
    ],
)
def test_error_has_the_number_of_tries_and_the_last_reply(replies: list[str], tries: str, last: str) -> None:
    found, log = score(Judge(replies), retries=len(replies) - 1)
    reason = f"judge 'judge' did not reply in the required form in {tries}; its last reply is {last}"
    assert found == Score(error=reason, judge_prompt="system\n\nuser", raw_response=replies[-1])
    assert len(log) == len(replies)


@pytest.mark.parametrize(("before", "raw"), [([], None), (["a", "b"], "b"), ([""], None)])
def test_judge_that_fails_is_not_asked_again(before: list[str], raw: str | None) -> None:
    judge = Judge([*before, ProviderError("server", "gone"), '{"ok": 1}'])
    found, _ = score(judge)
    assert found == Score(error="judge 'judge': server: gone", judge_prompt="system\n\nuser", raw_response=raw)
    assert len(judge.asked) == len(before) + 1


def priced(costs: Sequence[float | None], reply: str = '{"score": 1}') -> Judge:
    return Judge([reply] * len(costs), Usage(input_tokens=1, output_tokens=1, total_tokens=2), costs)


def judge_named(name: str) -> PlanEvaluator:
    return evaluator("llm_judge", name=name, target="judge")


def graded(ask: Judge, *evaluators: PlanEvaluator) -> Grade:
    return grade(plan_case(*evaluators), "Hello", tools(ask=ask))


@pytest.mark.parametrize(
    ("costs", "total"), [([], None), ([0.1, 0.2, 0.3], 0.6), ([0.0, 0.0], 0.0), ([None], None), ([0.1, None], 0.1)]
)
def test_known_costs_are_summed_and_unknown_ones_kept_apart(costs: list[float | None], total: float | None) -> None:
    judges = [judge_named(f"j{number}") for number in range(len(costs))]
    found = graded(priced(costs), *judges)
    assert found.judge_cost_usd == (None if total is None else pytest.approx(total))
    assert (found.judge_usage is None) == (not costs)
    parts = [expense.cost_usd for expense in found.judge_expenses]
    assert parts == ([0.1, None] if costs == [0.1, None] else [])


def test_judges_of_a_case_are_asked_concurrently() -> None:
    async def main() -> Grade:
        both = asyncio.Barrier(2)

        async def ask(target: str, question: JudgeQuestion) -> Response:
            await asyncio.wait_for(both.wait(), 10)
            return Response('{"score": 1}', (), has_trace=False)

        case = plan_case(judge_named("a"), evaluator("contains", value="Hello"), judge_named("b"))
        return await evaluate(submission("Hello", case), tools(ask=ask))

    assert asyncio.run(main()).verdict == "pass"


def test_unreadable_replies_cost_too() -> None:
    found = graded(priced([0.25] * 3, "unreadable"), judge_named("j"))
    assert found.judge_usage == Usage(input_tokens=3, output_tokens=3, total_tokens=6)
    assert (found.verdict, found.judge_cost_usd) == ("error", 0.75)


def test_judges_of_composites_are_counted() -> None:
    members = [judge_named("j"), evaluator("rubric", target="judge", rubrics=[{"id": "a", "description": "d"}])]
    aggregator = {"type": "llm_judge", "target": "judge"}
    combined = evaluator("composite", evaluators=members, aggregator=aggregator)
    reply = '{"score": 1, "checks": [{"id": "a", "satisfied": true}]}'
    found = graded(priced([0.25] * 4, reply), combined, judge_named("beside"))
    assert (found.verdict, found.judge_cost_usd) == ("pass", 1.0)
    assert found.judge_usage == Usage(input_tokens=4, output_tokens=4, total_tokens=8)
