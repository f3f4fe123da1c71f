"""`compile --diff` and part of a plan under random edits: what changed is said, and nothing else."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agentv_ci.compile.diff import diff
from agentv_ci.contracts.plan import Plan
from tests.compile.builders import EVAL, MOCK, Files, case, compile_here, contains, evals, targets, text_of
from tests.support import write

Settings = dict[str, Any]

# Knob → (values, what every reason for its change begins with).
MEANT: dict[str, tuple[list[Any], tuple[str, ...]]] = {
    "question": (["a", "b"], ("input message 1 text",)),
    "turns": ([1, 2], ("input message 2",)),
    "file": (["f", "f\n"], ("file evals/a.txt",)),
    "expected": (["Hello!", {"a": 1}, {"a": None}], ("expected message 1",)),
    "outcome": (["x", "y"], ("expected outcome",)),
    "threshold": ([0.8, 0], ("threshold",)),
    "value": (["v", "w"], ("evaluator 'c' value",)),
    "weight": ([1, 2], ("evaluator 'c' weight",)),
    "member": (["m", "n"], ("evaluator 'k' member 'c' value",)),
    "member_schema": ([True, {"type": "object"}], ("evaluator 'k' member 's' schema",)),
    "member_file": (["1", "2"], ("evaluator 'k' member 'p' file evals/p.py",)),
    "weights": ([{}, {"c": 3}], ("evaluator 'k' member 'c' weight",)),
    "prompt": (["P", "Q"], ("evaluator 'j' prompt",)),
    "rubric": (["r", "q"], ("evaluator 'rubrics' rubric 'rubric-1' description",)),
    "judge": (["0", "1"], ("evaluator 'j' judge", "evaluator 'rubrics' judge")),
    "response": (["r", "s"], ("target response",)),
    "usage": ([1, 2], ("target usage",)),
}
NOT_MEANT: dict[str, list[Any]] = {
    "note": ["m", "n"],
    "metadata": [{}, {"a": None}],
    "repeat": [1, 3],
    "retries": [2, 3],
    "workers": [1, 2],
    "seeds": [[], [1]],
    "name": ["default", "other"],
    "neighbours": [0, 2],
    "others": [{}, {"two": "x"}],
    "suite": ["evals/a.yaml", "evals/b.yaml"],
}

meant = st.fixed_dictionaries({name: st.sampled_from(values) for name, (values, _) in MEANT.items()})
not_meant = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in NOT_MEANT.items()})


def repository(inside: Settings, outside: Settings) -> Files:
    members = [
        contains(inside["member"]),
        {"name": "s", "type": "schema", "schema_inline": inside["member_schema"]},
        {"name": "p", "type": "code", "script": "./p.py"},
    ]
    turns = [{"role": "user", "content": [inside["question"], {"type": "file", "value": "a.txt"}]}]
    turns += [{"role": "user", "content": "And?"}] * (inside["turns"] - 1)
    asked = case(
        expected_outcome=inside["outcome"],
        input_messages=turns,
        expected_messages=[{"role": "assistant", "content": inside["expected"]}],
        rubrics=[inside["rubric"]],
        evaluators=[
            contains(inside["value"], weight=inside["weight"]),
            {"name": "j", "type": "llm_judge", "prompt": "./j.md"},
            {
                "name": "k",
                "type": "composite",
                "evaluators": members,
                "aggregator": {"type": "weighted_average", "weights": inside["weights"]},
            },
        ],
        note=outside["note"],
        metadata=outside["metadata"],
        execution={
            "threshold": inside["threshold"],
            "repeat": outside["repeat"],
            "max_retries": outside["retries"],
            "seeds": outside["seeds"],
        },
    )
    neighbours = [case(f"near-{number}") for number in range(outside["neighbours"])]
    name = outside["name"]
    return {
        outside["suite"]: evals(*neighbours, asked, target=name),
        "evals/a.txt": inside["file"],
        "evals/j.md": inside["prompt"] + " {{ candidate_answer }}",
        "evals/p.py": inside["member_file"],
        "targets.yaml": targets(
            {
                **MOCK,
                "name": name,
                "judge_target": "judge",
                "response": inside["response"],
                "usage": {"input_tokens": inside["usage"]},
                "workers": outside["workers"],
                "responses": outside["others"],
            },
            {"name": "judge", "provider": "mock", "response": inside["judge"]},
        ),
    }


def compiled(files: Files) -> Plan:
    with TemporaryDirectory() as folder:
        return compile_here(Path(folder), files)


few = settings(deadline=None, derandomize=True, max_examples=60, phases=[Phase.generate])


@few
@given(meant, not_meant, not_meant, st.data())
def test_every_edit_has_its_reason_and_nothing_else_has_one(
    inside: Settings, around: Settings, around_too: Settings, data: st.DataObject
) -> None:
    edited = set(data.draw(st.lists(st.sampled_from(sorted(MEANT)), max_size=4)))
    after = {**inside}
    for name in edited:
        values = MEANT[name][0]
        after[name] = values[(values.index(inside[name]) + 1) % len(values)]
    around_too = {**around_too, "suite": around["suite"]}
    found = diff(compiled(repository(inside, around)), compiled(repository(after, around_too)))
    mine = [each for each in found.changed if each.id == "one"]
    assert len(mine) == bool(edited)
    if not mine:
        return
    reasons = mine[0].reasons
    renamed = {"target default → other", "target other → default"}
    unexplained = [reason for reason in reasons if reason not in renamed]
    for name in edited:
        beginnings = MEANT[name][1]
        for beginning in beginnings:
            assert [reason for reason in reasons if reason.startswith(beginning)], (name, reasons)
            unexplained = [reason for reason in unexplained if not reason.startswith(beginning)]
    assert unexplained == []
    assert len(set(reasons)) == len(reasons)


@few
@given(meant, not_meant, not_meant)
def test_nothing_of_a_case_that_only_stands_elsewhere_is_listed(
    inside: Settings, around: Settings, around_too: Settings
) -> None:
    alone, alone_too = ({**each, "neighbours": 0} for each in (around, around_too))
    found = diff(compiled(repository(inside, alone)), compiled(repository(inside, alone_too)))
    assert (found.added, found.removed, found.changed) == ((), (), ())


@few
@given(meant, not_meant, meant, not_meant)
def test_diff_of_two_plans_backwards_swaps_added_and_removed(
    first: Settings, around: Settings, second: Settings, around_too: Settings
) -> None:
    old, new = compiled(repository(first, around)), compiled(repository(second, around_too))
    there, back = diff(old, new), diff(new, old)
    assert sorted(there.added, key=repr) == sorted(back.removed, key=repr)
    assert sorted(there.removed, key=repr) == sorted(back.added, key=repr)
    assert {each.id for each in there.changed} == {each.id for each in back.changed}
    assert all(each.reasons for each in (*there.changed, *back.changed))


@few
@given(meant, not_meant, st.sampled_from(["one", "near-*", "*", "near-1"]))
def test_part_of_a_plan_is_what_compiling_that_part_gives(inside: Settings, outside: Settings, ids: str) -> None:
    if outside["neighbours"] == 0 and ids.startswith("near"):
        ids = "one"
    with TemporaryDirectory() as name:
        folder = Path(name)
        files = repository(inside, {**outside, "suite": EVAL})
        write(folder, {"plan.json": text_of(compile_here(folder, files))})
        of_documents = compile_here(folder, files, eval_ids=[ids])
        of_plan = compile_here(folder, files, patterns=["plan.json"], eval_ids=[ids])
        assert text_of(of_plan) == text_of(of_documents)
