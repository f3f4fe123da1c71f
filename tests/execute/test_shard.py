"""Parts of a plan: disjoint, the same in every process, about equally long."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.answer_evaluators import ContainsEvaluator
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.plan_evaluators import PlanCodeEvaluator, PlanLlmJudgeEvaluator
from agentv_ci.contracts.plan_parts import PlanMessage, TextPart
from agentv_ci.execute.shard import CHARACTERS_A_QUESTION, Shard, part_of
from tests.support import REPOSITORY, clean_environment
from tests.support.runs import case, plan

CHECKED = (ContainsEvaluator(name="c", type="contains", value="x"),)
SCRIPTED = (PlanCodeEvaluator(name="s", command="x"),)
JUDGED = (PlanLlmJudgeEvaluator(name="j", target="judge"),)


def text(size: int) -> tuple[PlanMessage, ...]:
    return (PlanMessage(role="user", content=(TextPart(text="x" * size),)),)


def parts(whole: Plan, total: int, durations_s: dict[str, float] | None = None) -> list[list[str]]:
    known = {("evals/a.yaml", name, "default"): seconds for name, seconds in (durations_s or {}).items()}
    return [[each.id for each in part_of(whole, Shard(index, total), known).cases] for index in range(1, total + 1)]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5000), st.booleans()), max_size=25),
    st.integers(1, 8),
    st.dictionaries(st.integers(0, 24).map(str), st.floats(0, 100), max_size=25),
)
def test_every_case_is_in_exactly_one_part_in_order(
    cases: list[tuple[int, int, bool]], total: int, durations_s: dict[str, float]
) -> None:
    whole = plan(
        *(
            case(str(n), trials=trials, evaluators=JUDGED if is_judged else CHECKED, input_messages=text(size))
            for n, (trials, size, is_judged) in enumerate(cases)
        )
    )
    found = parts(whole, total, durations_s)
    assert sorted((each for part in found for each in part), key=int) == [each.id for each in whole.cases]
    assert all(part == sorted(part, key=int) for part in found)


@settings(max_examples=40)
@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=30), st.integers(1, 6))
def test_no_part_is_longer_than_the_bound_of_the_rule(seconds: list[float], total: int) -> None:
    whole = plan(*(case(str(number)) for number in range(len(seconds))))
    durations_s = {str(number): each for number, each in enumerate(seconds)}
    longest = max(sum(seconds[int(each)] for each in part) for part in parts(whole, total, durations_s))
    # Graham 1969: 4/3 − 1/(3m) of the best, which is no shorter than the mean and the longest case.
    assert longest <= (sum(seconds) / total + max(seconds)) * (1 + 1e-9)


SIX = [case(str(number)) for number in range(6)]


@pytest.mark.parametrize(
    ("cases", "durations_s", "expected"),
    [
        ([case("long", input_messages=text(40_000)), *SIX], {}, [["long"], list("012345")]),
        (
            [case("longer", input_messages=text(3 * CHARACTERS_A_QUESTION // 2)), *SIX[:3]],
            {},
            [["longer"], list("012")],
        ),
        ([case("often", trials=6), *SIX], {}, [["often"], list("012345")]),
        ([case("judged", evaluators=JUDGED), case("a"), case("b")], {}, [["judged"], ["a", "b"]]),
        ([case("script", evaluators=SCRIPTED), case("a"), case("b")], {}, [["script"], ["a", "b"]]),
        ([case(name) for name in "abcd"], dict.fromkeys("abc", 10.0), [["a", "c"], ["b", "d"]]),
        ([case(name) for name in "abcd"], dict.fromkeys("abcd", 0.0), [["a", "c"], ["b", "d"]]),
        ([case(name) for name in "abcd"], {"a": 1, "b": 2, "c": 3}, [["a", "c"], ["b", "d"]]),
    ],
    ids=["text", "base", "trials", "judge", "script", "unknown duration", "no duration", "median"],
)
def test_parts_are_balanced_by_durations_else_by_size(
    cases: list[PlanCase], durations_s: dict[str, float], expected: list[list[str]]
) -> None:
    assert parts(plan(*cases), 2, durations_s) == expected


def test_arms_of_a_case_stay_together() -> None:
    arms = ("now", "next", "last")
    whole = plan(*(case(str(number), arm=arm) for number in range(7) for arm in arms))
    for total in (2, 3, 7):
        found = [part_of(whole, Shard(index, total), {}).cases for index in range(1, total + 1)]
        assert max(len(part) for part in found) <= -(-7 // total) * len(arms)
        for part in found:
            assert [each.id for each in part] == [each for each in sorted({case.id for case in part}) for _ in arms]


def test_a_part_keeps_the_digest_of_the_whole() -> None:
    whole = plan(case("a"), case("b"))
    part = part_of(whole, Shard(1, 2), {})
    assert (part.digest, len(part.cases)) == (whole.digest, 1)


@pytest.mark.slow
def test_every_process_computes_the_same_parts() -> None:
    program = """
from agentv_ci.execute.shard import Shard, part_of
from tests.support.runs import case, plan
whole = plan(*(case(f"c{n}", trials=1 + n * 37 % 5) for n in range(12)))
print([each.id for each in part_of(whole, Shard(2, 3), {("evals/a.yaml", "c1"): 3.0}).cases])
"""
    command = [sys.executable, "-c", program]
    printed = {
        subprocess.check_output(command, cwd=REPOSITORY, env=clean_environment({"PYTHONHASHSEED": seed}))
        for seed in ("1", "2")
    }
    assert len(printed) == 1
