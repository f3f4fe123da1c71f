"""What changed since an older plan, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentv_ci.compile.diff import diff
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.plan_summaries import PlanDiff
from tests.compile.builders import EVAL, MOCK, case, compile_here, contains, evals, targets
from tests.compile.test_digest import (
    HARMLESS,
    MEANINGFUL,
    Change,
    Repository,
    edited,
    in_case,
    in_evaluator,
    in_file,
    in_suite,
    in_target,
    one,
    rich,
    without,
)

GPT = {"name": "default", "provider": "openai", "model": "gpt-x", "api_key": "${{ KEY }}"}


def plans(folder: Path, before: Repository, after: Repository) -> tuple[Plan, Plan]:
    return compile_here(folder / "old", before), compile_here(folder / "new", after)


def changed(folder: Path, change: Change) -> PlanDiff:
    after = rich()
    change(after)
    return diff(*plans(folder, rich(), after))


def reasons(folder: Path, change: Change) -> list[str]:
    found = changed(folder, change)
    assert (found.added, found.removed) == ((), ())
    return [reason for each in found.changed for reason in each.reasons if each.id == "one"]


@pytest.mark.parametrize("change", HARMLESS.values(), ids=list(HARMLESS))
def test_case_that_cannot_give_another_result_is_not_listed(change: Change, tmp_path: Path) -> None:
    found = changed(tmp_path, change)
    assert "one" not in {each.id for each in (*found.changed, *found.added, *found.removed)}


@pytest.mark.parametrize(
    "change", [each for name, each in MEANINGFUL.items() if name != "the id"], ids=[*list(MEANINGFUL)[1:]]
)
def test_case_that_can_give_another_result_is_listed_with_a_reason(change: Change, tmp_path: Path) -> None:
    found = reasons(tmp_path, change)
    assert found
    assert all(found)


MOVED_TO_OTHER = [
    "target default → other",
    "target response text → Other: text",
    "evaluator 'j' judge response text → Other: text",
]
"""A mock without a judge of its own judges itself."""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (in_file("evals/question.txt"), ["file evals/question.txt changed"]),
        (in_file("evals/rules.prompt.md"), ["file evals/rules.prompt.md changed"]),
        (in_file("evals/judge.md"), ["evaluator 'j' prompt changed"]),
        (in_file("evals/x.json"), ["evaluator 'p' file evals/x.json changed"]),
        (in_file("evals/schema.json", {"type": "array"}), ["evaluator 's' schema changed"]),
        (in_evaluator("k", prompt="Is it bad?"), ["evaluator 'k' prompt changed"]),
        (in_evaluator("c", weight=2), ["evaluator 'c' weight 1 → 2"]),
        (in_evaluator("c", required=True), ["evaluator 'c' required false → true"]),
        (in_evaluator("c", min_score=0.5), ["evaluator 'c' min_score not set → 0.5"]),
        (in_evaluator("c", value="Hi"), ["evaluator 'c' value text → Hi"]),
        (in_evaluator("c", value="x" * 99), ["evaluator 'c' value changed"]),
        (in_evaluator("c", type="regex"), ["evaluator 'c' type contains → regex"]),
        (in_evaluator("p", script="judge.py --strict"), ["evaluator 'p' command changed"]),
        (in_evaluator("k", judge_target="other"), ["evaluator 'k' judge response text → Other: text"]),
        (in_target("strict", response="No"), ["evaluator 'k' judge response text → No"]),
        (in_target("default", response="Yes"), ["target response text → Yes"]),
        (in_case(execution={"target": "other"}), MOVED_TO_OTHER),
        (in_case(execution={"threshold": 0.9}), ["threshold 0.8 → 0.9"]),
        (in_suite(execution={"threshold": 1}), ["threshold 0.8 → 1"]),
        (in_case(expected_outcome="Another."), ["expected outcome changed"]),
        (without("r"), ["evaluator 'r' removed"]),
        (lambda files: one(files)["evaluators"].append(contains("x", name="z")), ["evaluator 'z' added"]),
        (lambda files: one(files)["evaluators"].reverse(), ["order of evaluators changed"]),
        (
            lambda files: one(files)["input_messages"].append({"role": "user", "content": "More."}),
            ["input message 3 added"],
        ),
        (
            edited(lambda files: one(files)["input_messages"][1]["content"], 0, lambda text: text + "!"),
            ["input message 2 text changed"],
        ),
        (
            lambda files: one(files)["input_messages"][1]["content"].pop(),
            ["file evals/question.txt removed from input message 2"],
        ),
        (
            in_file(".agentv/config.yaml", {"$schema": "agentv-config-v2", "guideline_patterns": []}),
            ["file evals/rules.prompt.md is no longer a guideline"],
        ),
        (
            lambda files: one(files)["expected_messages"][0]["tool_calls"][0].update(input={"q": 1}),
            ["expected message 1 tool calls changed"],
        ),
    ],
)
def test_reason_says_what_changed(change: Change, said: list[str], tmp_path: Path) -> None:
    assert reasons(tmp_path, change) == said


def asking(target: dict[str, Any], **given: Any) -> Repository:
    return {EVAL: evals(case(evaluators=[contains()], **given)), "targets.yaml": targets(target)}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "gpt-y"}, ["target model gpt-x → gpt-y"]),
        ({"max_output_tokens": 5}, ["target max_output_tokens not set → 5"]),
        ({"headers": {"X-Key": "hidden"}}, ["target headers changed"]),
        ({"extra_body": {"a": 1}}, ["target extra_body changed"]),
        ({"provider": "anthropic"}, ["target provider openai → anthropic"]),
    ],
)
def test_reason_names_the_setting_of_the_target(given: dict[str, Any], said: list[str], tmp_path: Path) -> None:
    (found,) = diff(*plans(tmp_path, asking(GPT), asking({**GPT, **given}))).changed
    assert list(found.reasons) == said


def test_reason_leads_into_composites(tmp_path: Path) -> None:
    def composite(value: str, weight: int) -> Repository:
        members = [contains(value, name="m"), contains("x", name="n", weight=weight)]
        whole = {"name": "together", "type": "composite", "evaluators": members}
        return {EVAL: evals(case(evaluators=[whole]))}

    (found,) = diff(*plans(tmp_path, composite("a", 1), composite("b", 2))).changed
    assert found.reasons == (
        "evaluator 'together' member 'm' value a → b",
        "evaluator 'together' member 'n' weight 1 → 2",
    )


def test_price_counts_where_a_limit_of_cost_is_judged_by_it(tmp_path: Path) -> None:
    def priced(model: str, dollars: float, evaluator: dict[str, Any]) -> Repository:
        known = {"gpt-x": {"input_per_mtok": 7, "output_per_mtok": 1}}
        prices = {**known, model: {"input_per_mtok": dollars, "output_per_mtok": 1}}
        return {
            EVAL: evals(case(evaluators=[evaluator])),
            "targets.yaml": targets(GPT),
            "evals/.agentv.yaml": {"$schema": "agentv-config-v2", "prices": prices},
        }

    cost = {"name": "cheap", "type": "cost", "max_usd": 1}
    (found,) = diff(*plans(tmp_path / "a", priced("gpt-x", 1, cost), priced("gpt-x", 2, cost))).changed
    assert found.reasons == ("prices changed",)
    assert diff(*plans(tmp_path / "b", priced("other", 1, cost), priced("other", 2, cost))).changed == ()
    assert diff(*plans(tmp_path / "c", priced("gpt-x", 1, contains()), priced("gpt-x", 2, contains()))).changed == ()


def test_cases_that_came_and_went(tmp_path: Path) -> None:
    before = {EVAL: evals(case("stays"), case("goes"))}
    after = {EVAL: evals(case("stays"), case("comes"))}
    found = diff(*plans(tmp_path, before, after))
    assert [(each.id, each.suite) for each in found.added] == [("comes", EVAL)]
    assert [(each.id, each.suite) for each in found.removed] == [("goes", EVAL)]
    assert found.changed == ()


def test_case_in_a_file_of_another_name_is_unchanged(tmp_path: Path) -> None:
    asked = evals(case("one"), case("two"))
    found = diff(*plans(tmp_path, {EVAL: asked}, {"evals/other/b.yaml": asked, "targets.yaml": targets(MOCK)}))
    assert found == PlanDiff(added=(), removed=(), changed=())


SHORT = {"id": "short", "description": "Is short"}


@pytest.mark.parametrize(
    ("rubrics", "said"),
    [
        (["Is kind", {**SHORT, "weight": 5}], "rubric 'short' weight 1 → 5"),
        (
            ["Is kind", {"id": "short", "description": "Is short", "required": False}],
            "rubric 'short' required true → false",
        ),
        (["Is kind", {**SHORT, "description": "Is brief"}], "rubric 'short' description changed"),
        (["Is kind"], "rubric 'short' removed"),
        (["Is kind", SHORT, "Is new"], "rubric 'rubric-3' added"),
    ],
)
def test_reason_names_the_criterion(rubrics: list[Any], said: str, tmp_path: Path) -> None:
    before = ["Is kind", SHORT]
    old, new = plans(tmp_path, {EVAL: evals(case(rubrics=before))}, {EVAL: evals(case(rubrics=rubrics))})
    (found,) = diff(old, new).changed
    assert found.reasons == (f"evaluator 'rubrics' {said}",)


def test_renamed_file_is_one_reason(tmp_path: Path) -> None:
    def attached(name: str) -> Repository:
        content = [{"type": "file", "value": name}]
        return {EVAL: evals(case(input_messages=[{"role": "user", "content": content}])), f"evals/{name}": "text"}

    (found,) = diff(*plans(tmp_path, attached("a.md"), attached("b.md"))).changed
    assert found.reasons == ("file evals/a.md renamed to evals/b.md",)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (lambda number: {"extra_body": {"seed": number}}, "target extra_body changed"),
        (
            lambda number: {"max_output_tokens": number},
            "target max_output_tokens 1152921504606846976 → 1152921504606846977",
        ),
    ],
)
def test_large_number_that_changed_is_told_exactly(setting: Any, said: str, tmp_path: Path) -> None:
    """A double does not tell these apart, and a digest does."""
    old, new = (asking({**GPT, **setting(number)}) for number in (2**60, 2**60 + 1))
    (found,) = diff(*plans(tmp_path, old, new)).changed
    assert found.reasons == (said,)


@pytest.mark.parametrize(
    ("evaluator", "target"),
    [
        ({"name": "cheap", "type": "cost", "max_usd": 1}, GPT),
        ({"name": "fast", "type": "latency", "max_ms": 9}, {**MOCK, "delay_ms": 5}),
    ],
)
def test_what_a_new_evaluator_makes_count_has_not_changed(
    evaluator: dict[str, Any], target: dict[str, Any], tmp_path: Path
) -> None:
    prices = {"gpt-x": {"input_per_mtok": 1, "output_per_mtok": 1}}
    config = {"evals/.agentv.yaml": {"$schema": "agentv-config-v2", "prices": prices}}

    def scored(*evaluators: dict[str, Any]) -> Repository:
        return {EVAL: evals(case(evaluators=list(evaluators))), "targets.yaml": targets(target), **config}

    (found,) = diff(*plans(tmp_path, scored(contains()), scored(contains(), evaluator))).changed
    assert found.reasons == (f"evaluator '{evaluator['name']}' added",)


def test_price_of_another_model_is_said_by_the_model(tmp_path: Path) -> None:
    cost = {"name": "cheap", "type": "cost", "max_usd": 1}
    prices = {
        model: {"input_per_mtok": dollars, "output_per_mtok": 1} for model, dollars in (("gpt-x", 1), ("gpt-y", 2))
    }

    def asked(model: str) -> Repository:
        config = {"$schema": "agentv-config-v2", "prices": prices}
        return {
            EVAL: evals(case(evaluators=[cost])),
            "targets.yaml": targets({**GPT, "model": model}),
            "evals/.agentv.yaml": config,
        }

    (found,) = diff(*plans(tmp_path, asked("gpt-x"), asked("gpt-y"))).changed
    assert found.reasons == ("target model gpt-x → gpt-y",)


def test_weights_are_told_in_order_and_not_those_of_members_that_went(tmp_path: Path) -> None:
    def composite(*members: tuple[str, int]) -> Repository:
        listed = [contains(name, name=name, weight=weight) for name, weight in members]
        return {EVAL: evals(case(evaluators=[{"name": "k", "type": "composite", "evaluators": listed}]))}

    before = composite(("d", 2), ("c", 2), ("b", 2), ("a", 2))
    (found,) = diff(*plans(tmp_path, before, composite(("d", 3), ("c", 3), ("b", 3)))).changed
    assert found.reasons == (
        "evaluator 'k' member 'a' removed",
        *(f"evaluator 'k' member '{name}' weight 2 → 3" for name in "dcb"),
    )
