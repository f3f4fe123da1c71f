"""Parts of a plan: exact, disjoint, the same everywhere, about equally long."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.contracts.evaluators import ContainsEvaluator
from agentv_ci.contracts.plan import Plan, PlanLlmJudgeEvaluator, PlanMessage, TextPart
from agentv_ci.execute.shard import Shard, part_of
from tests.report.builders import case, plan
from tests.support import run_process, write

CHECKED = (ContainsEvaluator(name="c", type="contains", value="x"),)
JUDGED = (PlanLlmJudgeEvaluator(name="j", target="judge"),)


MOCK = {"name": "default", "provider": "mock", "response": "42"}


def parts(whole: Plan, total: int, durations_s: dict[tuple[str, str], float] | None = None) -> list[list[str]]:
    shards = [Shard(index, total) for index in range(1, total + 1)]
    return [[each.id for each in part_of(whole, shard, durations_s or {}).cases] for shard in shards]


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5000), st.booleans()), max_size=25),
    st.integers(1, 8),
    st.dictionaries(st.integers(0, 24), st.floats(0, 100), max_size=25),
)
def test_every_case_is_in_exactly_one_part_in_order(
    cases: list[tuple[int, int, bool]], total: int, durations: dict[int, float]
) -> None:
    whole = plan(
        *(
            case(
                str(number),
                trials=trials,
                evaluators=JUDGED if is_judged else CHECKED,
                input_messages=(PlanMessage(role="user", content=(TextPart(text="x" * size),)),),
            )
            for number, (trials, size, is_judged) in enumerate(cases)
        )
    )
    known = {("evals/a.yaml", str(number)): seconds for number, seconds in durations.items()}
    found = parts(whole, total, known)
    assert sorted((each for part in found for each in part), key=int) == [each.id for each in whole.cases]
    assert all(part == sorted(part, key=int) for part in found)
    assert found == parts(whole, total, known)


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=30), st.integers(1, 6))
def test_no_part_is_longer_than_the_bound_of_the_rule(seconds: list[float], total: int) -> None:
    whole = plan(*(case(str(number)) for number in range(len(seconds))))
    known = {("evals/a.yaml", str(number)): each for number, each in enumerate(seconds)}
    longest = max(sum(seconds[int(each)] for each in part) for part in parts(whole, total, known))
    # Graham 1969: 4/3 − 1/(3m) of the best, which is no shorter than the mean and the longest case.
    assert longest <= (sum(seconds) / total + max(seconds)) * (1 + 1e-9)


def test_a_part_keeps_the_digest_of_the_whole() -> None:
    whole = plan(case("a"), case("b"))
    part = part_of(whole, Shard(1, 2), {})
    assert part.digest == whole.digest
    assert len(part.cases) == 1


def test_trials_judges_and_long_questions_weigh() -> None:
    long = (PlanMessage(role="user", content=(TextPart(text="x" * 40_000),)),)
    whole = plan(case("long", input_messages=long), *(case(str(number)) for number in range(6)))
    assert parts(whole, 2) == [["long"], [str(number) for number in range(6)]]
    whole = plan(case("often", trials=6), *(case(str(number)) for number in range(6)))
    assert parts(whole, 2)[0] == ["often"]
    whole = plan(case("judged", evaluators=JUDGED), case("a"), case("b"))
    assert parts(whole, 2) == [["judged"], ["a", "b"]]


def test_a_case_without_a_duration_counts_as_much_as_the_others() -> None:
    whole = plan(*(case(name) for name in "abcd"))
    known = {("evals/a.yaml", name): 10.0 for name in "abc"}
    assert sorted(map(len, parts(whole, 2, known))) == [2, 2]


def test_every_process_comes_to_the_same_parts(repository: Path) -> None:
    cases = [
        {"id": f"c{n}", "expected_outcome": "x", "expected_messages": [],
         "input_messages": [{"role": "user", "content": "x" * (n * 37 % 11)}],
         "evaluators": [{"name": "e", "type": "contains", "value": "42"}]}
        for n in range(12)
    ]  # fmt: skip
    write(
        repository,
        {
            "a.yaml": json.dumps({"$schema": "agentv-eval-v2", "evalcases": cases}),
            "targets.yaml": json.dumps({"$schema": "agentv-targets-v2.2", "targets": [MOCK]}),
        },
    )
    found = []
    for seed in ("1", "2"):
        done = run_process(
            "eval", "a.yaml", "--shard", "2/3", "--out", f"{seed}.jsonl", cwd=repository, env={"PYTHONHASHSEED": seed}
        )
        assert done.code == 0, done.err
        lines = (repository / f"{seed}.jsonl").read_text("utf-8").splitlines()
        found.append([json.loads(line)["eval_id"] for line in lines])
    assert found[0] == found[1]
    assert len(found[0]) == 4
