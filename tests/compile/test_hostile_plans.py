"""Hostile repositories, schemas and plans: none is taken for another one, none is a bug of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, validators
from referencing import Registry

from agentv_ci.app.compile import Selection, compile_paths, estimate_run
from agentv_ci.cli import run
from agentv_ci.compile.diff import diff
from agentv_ci.compile.document import resealed
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.plan import Plan, PlanSchemaEvaluator
from agentv_ci.errors import BUG
from tests.compile.builders import (
    EVAL,
    MOCK,
    Document,
    Files,
    case,
    compile_here,
    contains,
    evals,
    targets,
    text_of,
    write_repository,
)
from tests.support import write

GPT = {"name": "default", "provider": "openai", "model": "gpt-5", "api_key": "${{ KEY }}"}
SCRIPT = {"name": "p", "type": "code", "script": "./judge.py"}
INTEGER = {"type": "integer"}
TEXT = {"type": "string"}
DRAFT_04 = "http://json-schema.org/draft-04/schema#"
DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"


def scored(*evaluators: Document, **given: Any) -> Document:
    return evals(case(evaluators=list(evaluators or [contains()]), **given))


def with_file(name: str) -> list[Document]:
    return [{"role": "user", "content": [{"type": "file", "value": name}]}]


def expecting(value: JsonValue) -> Files:
    return {EVAL: scored(expected_messages=[{"role": "assistant", "content": {"a": value}}])}


def configured(value: JsonValue) -> Files:
    return {EVAL: scored({**SCRIPT, "config": {"a": value}}), "evals/judge.py": "#"}


def asked_with(value: JsonValue) -> Files:
    return {EVAL: scored(), "targets.yaml": targets({**GPT, "extra_body": {"a": value}})}


def checked_by(value: JsonValue) -> Files:
    return {EVAL: scored({"name": "s", "type": "schema", "schema_inline": {"const": value}})}


def calling(value: JsonValue) -> Files:
    return {EVAL: scored(expected_messages=[{"role": "assistant", "tool_calls": [{"tool": "t", "input": value}]}])}


# --- compile --diff -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [expecting, configured, asked_with, checked_by, calling])
@pytest.mark.parametrize(("old", "new"), [(1, True), (0, False)])
def test_every_changed_case_has_a_reason(tmp_path: Path, made: Any, old: JsonValue, new: JsonValue) -> None:
    before, after = compile_here(tmp_path / "old", made(old)), compile_here(tmp_path / "new", made(new))
    (changed,) = diff(before, after).changed
    assert changed.reasons


def test_case_that_two_files_held_and_one_file_holds_is_removed_once(tmp_path: Path) -> None:
    old = compile_here(tmp_path / "old", {"evals/a.yaml": scored(), "evals/b.yaml": scored()})
    new = compile_here(tmp_path / "new", {"evals/c.yaml": scored()})
    assert len(diff(old, new).removed) == 1
    assert len(diff(new, old).added) == 1


def test_reasons_do_not_name_a_script_that_was_only_moved(tmp_path: Path) -> None:
    before = {**SCRIPT, "files": ["d.json"]}
    after = {**SCRIPT, "script": "./s/judge.py", "files": ["s/d.json"]}
    old = compile_here(tmp_path / "old", {EVAL: scored(before), "evals/judge.py": "#", "evals/d.json": "1"})
    new = compile_here(tmp_path / "new", {EVAL: scored(after), "evals/s/judge.py": "#", "evals/s/d.json": "2"})
    (changed,) = diff(old, new).changed
    assert not [reason for reason in changed.reasons if "judge.py" in reason or "command" in reason]


def test_reasons_do_not_name_an_aggregator_that_nobody_wrote(tmp_path: Path) -> None:
    def of(*members: Document) -> Files:
        return {EVAL: scored({"name": "k", "type": "composite", "evaluators": list(members)})}

    old = compile_here(tmp_path / "old", of(contains(name="a"), contains(name="b")))
    new = compile_here(tmp_path / "new", of(contains(name="a")))
    (changed,) = diff(old, new).changed
    assert changed.reasons == ("evaluator 'k' member 'b' removed",)


# --- digests ------------------------------------------------------------------------------------------------------


def digest_of(folder: Path, files: Files) -> str:
    (found,) = compile_here(folder, files).cases
    return found.digest


def test_digest_changes_when_two_files_of_one_name_are_swapped(tmp_path: Path) -> None:
    document = scored({**SCRIPT, "files": ["x/d.json", "y/d.json"]})
    first: Files = {EVAL: document, "evals/judge.py": "#", "evals/x/d.json": "1", "evals/y/d.json": "2"}
    second: Files = {**first, "evals/x/d.json": "2", "evals/y/d.json": "1"}
    assert digest_of(tmp_path / "a", first) != digest_of(tmp_path / "b", second)


def test_digest_changes_when_a_file_is_moved_away_from_its_script(tmp_path: Path) -> None:
    first: Files = {EVAL: scored({**SCRIPT, "files": ["d.json"]}), "evals/judge.py": "#", "evals/d.json": "1"}
    second: Files = {EVAL: scored({**SCRIPT, "files": ["sub/d.json"]}), "evals/judge.py": "#", "evals/sub/d.json": "1"}
    assert digest_of(tmp_path / "a", first) != digest_of(tmp_path / "b", second)


def test_digest_changes_with_the_price_of_a_dated_model(tmp_path: Path) -> None:
    def priced(dollars: int) -> Files:
        price = {"input_per_mtok": dollars, "output_per_mtok": dollars}
        return {
            EVAL: scored({"name": "c", "type": "cost", "max_usd": 1}),
            "targets.yaml": targets({**GPT, "model": "gpt-5-2025-08-07"}),
            "evals/.agentv.yaml": {"$schema": "agentv-config-v2", "prices": {"gpt-5": price}},
        }

    assert digest_of(tmp_path / "a", priced(1)) != digest_of(tmp_path / "b", priced(100))


def test_digest_changes_with_the_order_in_which_a_judge_reads_the_expected_answer(tmp_path: Path) -> None:
    def of(answer: Document) -> Files:
        return {EVAL: evals(case(expected_messages=[{"role": "assistant", "content": answer}]))}

    first = compile_here(tmp_path / "a", of({"a": 1, "b": 2})).cases[0]
    second = compile_here(tmp_path / "b", of({"b": 2, "a": 1})).cases[0]
    assert (first.reference_answer == second.reference_answer) == (first.digest == second.digest)


@pytest.mark.parametrize(
    ("target", "written_out"),
    [
        (GPT, {"api_format": "chat"}),
        (GPT, {"extra_body": {}}),
        ({**GPT, "base_url": "http://localhost/v1"}, {"base_url": "http://localhost/v1/"}),
        ({"name": "default", "provider": "anthropic", "model": "m"}, {"version": "2023-06-01"}),
        ({"name": "default", "provider": "codex"}, {"approval": "never"}),
        ({"name": "default", "provider": "vscode"}, {"wait": True}),
        ({"name": "default", "provider": "cli", "command_template": "a {FILES}"}, {"files_format": "{path}"}),
        ({"name": "default", "provider": "cli", "command_template": "a {FILES}"}, {"env": {}}),
    ],
    ids=str,
)
def test_digest_stays_when_a_default_of_a_target_is_written_out(
    tmp_path: Path, target: Document, written_out: Document
) -> None:
    plain = digest_of(tmp_path / "a", {EVAL: scored(), "targets.yaml": targets(target)})
    assert digest_of(tmp_path / "b", {EVAL: scored(), "targets.yaml": targets({**target, **written_out})}) == plain


def test_digest_stays_when_a_default_of_an_evaluator_is_written_out(tmp_path: Path) -> None:
    trajectory = {"name": "t", "type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "a", "input": 1}]}
    plain = digest_of(tmp_path / "a", {EVAL: scored(trajectory)})
    assert digest_of(tmp_path / "b", {EVAL: scored({**trajectory, "args_match": "exact"})}) == plain


# --- targets of one name ------------------------------------------------------------------------------------------


def refused(folder: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch, *command: str) -> int:
    write(folder, {"plan.json": text_of(plan)})
    monkeypatch.chdir(folder)
    return run([*command, "plan.json"])


def test_plan_of_targets_that_differ_by_one_and_true_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "evals/a/e.yaml": scored(),
        "evals/a/targets.yaml": targets({**GPT, "extra_body": {"a": 1}}),
        "evals/b/e.yaml": evals(case("two", evaluators=[contains()])),
        "evals/b/targets.yaml": targets({**GPT, "extra_body": {"a": True}}),
    }
    plan = compile_here(tmp_path, files)
    assert len(plan.targets) == 2
    assert refused(tmp_path, plan, monkeypatch, "compile") == 0


def test_plan_of_a_target_called_like_the_key_of_another_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "default@evals/b/targets.yaml"
    files = {
        "evals/a/e.yaml": evals(
            case("one", evaluators=[contains()]), case("zero", evaluators=[contains()], execution={"target": name})
        ),
        "evals/a/targets.yaml": targets(MOCK, {"name": name, "provider": "mock", "response": "z"}),
        "evals/b/e.yaml": evals(case("two", evaluators=[contains()])),
        "evals/b/targets.yaml": targets({**MOCK, "response": "y"}),
    }
    plan = compile_here(tmp_path, files)
    assert len(plan.targets) == 3
    assert refused(tmp_path, plan, monkeypatch, "compile") == 0


# --- part of a plan -----------------------------------------------------------------------------------------------

PARTS: dict[str, Files] = {
    "files of equal content": {
        EVAL: evals(
            case("one", input_messages=with_file("a.txt"), evaluators=[contains()]),
            case("two", input_messages=with_file("b.txt"), evaluators=[contains()]),
        ),
        "evals/a.txt": "x",
        "evals/b.txt": "x",
    },
    "targets in another order": {
        EVAL: evals(
            case("one", evaluators=[contains()], execution={"target": "b"}),
            case(
                "two",
                evaluators=[{"name": "j", "type": "llm_judge", "judge_target": "b"}],
                execution={"target": "a"},
            ),
        ),
        "targets.yaml": targets({"name": "a", "provider": "mock"}, {"name": "b", "provider": "mock"}),
    },
    "two targets of one name": {
        "evals/a/e.yaml": evals(case("one", evaluators=[contains()])),
        "evals/a/targets.yaml": targets({**MOCK, "response": "x"}),
        "evals/b/e.yaml": evals(case("two", evaluators=[contains()])),
        "evals/b/targets.yaml": targets({**MOCK, "response": "y"}),
    },
}


@pytest.mark.parametrize("files", PARTS.values(), ids=PARTS)
def test_part_of_a_plan_is_the_plan_of_that_part(tmp_path: Path, files: Files) -> None:
    write(tmp_path, {"plan.json": text_of(compile_here(tmp_path, files))})
    of_documents = compile_here(tmp_path, files, eval_ids=["two"])
    of_plan = compile_here(tmp_path, files, patterns=["plan.json"], eval_ids=["two"])
    assert text_of(of_plan) == text_of(of_documents)


# --- schemas of several files -------------------------------------------------------------------------------------


def is_valid(folder: Path, files: Files, instance: JsonValue) -> bool:
    """Whether the bundle of `s.yaml` accepts a value; raises what checking raises."""
    given = {f"evals/{name}": each for name, each in files.items()}
    document = scored({"name": "s", "type": "schema", "schema_file": "s.yaml"})
    (found,) = compile_here(folder, {EVAL: document, **given}).cases
    (evaluator,) = found.evaluators
    assert isinstance(evaluator, PlanSchemaEvaluator)
    schema = evaluator.schema_
    dialect = validators.validator_for(schema, default=Draft202012Validator)
    return dialect(schema, registry=Registry()).is_valid(instance)


def holding(**properties: str) -> Document:
    return {"properties": {name: {"$ref": reference} for name, reference in properties.items()}}


BUNDLES: dict[str, tuple[Files, JsonValue, JsonValue]] = {
    "equal files in two folders, beside different ones": (
        {
            "s.yaml": holding(a="p/b.json", b="q/b.json"),
            "p/b.json": {"$ref": "t.json"},
            "q/b.json": {"$ref": "t.json"},
            "p/t.json": INTEGER,
            "q/t.json": TEXT,
        },
        {"a": 1, "b": "x"},
        {"a": "x", "b": 1},
    ),
    "two files of one $id": (
        {
            "s.yaml": holding(a="p.json", b="q.json"),
            "p.json": {"$id": "http://localhost/b", **INTEGER},
            "q.json": {"$id": "http://localhost/b", **TEXT},
        },
        {"a": 1, "b": "x"},
        {"a": "x", "b": 1},
    ),
    "draft-04, and a file that names no dialect": (
        {"s.yaml": {"$schema": DRAFT_04, **holding(a="b.json")}, "b.json": INTEGER},
        {"a": 1},
        {"a": "x"},
    ),
    "draft-07, and a file that names no dialect and only refers": (
        {"s.yaml": {"$schema": DRAFT_07, **holding(a="b.json")}, "b.json": {"$ref": "c.json"}, "c.json": INTEGER},
        {"a": 1},
        {"a": "x"},
    ),
    "draft-07, a circle, and a root that only refers": (
        {
            "s.yaml": {
                "$schema": DRAFT_07,
                "$ref": "#/definitions/x",
                "definitions": {"x": holding(a="b.json"), "y": INTEGER},
            },
            "b.json": {"$schema": DRAFT_07, **holding(c="s.yaml#/definitions/y")},
        },
        {"a": {"c": 1}},
        {"a": {"c": "x"}},
    ),
    "draft-07, and a file whose $ref hides what stands beside it": (
        {
            "s.yaml": {"$schema": DRAFT_07, **holding(a="b.json", b="c.json")},
            "b.json": {"$schema": DRAFT_07, "$ref": "c.json", "maximum": 1},
            "c.json": {"$schema": DRAFT_07, **INTEGER},
        },
        {"a": 2},
        {"a": "x"},
    ),
    "draft-07 with $defs": (
        {
            "s.yaml": {"$schema": DRAFT_07, **holding(a="#/$defs/x"), "$defs": {"x": {"$ref": "c.json"}}},
            "c.json": INTEGER,
        },
        {"a": 1},
        {"a": "x"},
    ),
    "a file that refers to itself by its relative $id": (
        {
            "s.yaml": holding(a="b.json"),
            "b.json": {"$id": "item.json", "$defs": {"x": INTEGER}, **holding(a="item.json#/$defs/x")},
        },
        {"a": {"a": 1}},
        {"a": {"a": "x"}},
    ),
    "a circle, and a root that refers to itself by its relative $id": (
        {
            "s.yaml": {"$id": "root.json", "$defs": {"x": INTEGER}, **holding(a="root.json#/$defs/x", n="b.json")},
            "b.json": holding(n="s.yaml"),
        },
        {"a": 1, "n": {"n": {"a": 1}}},
        {"a": 1, "n": {"n": {"a": "x"}}},
    ),
    "a subschema with an $id of its own in another file": (
        {
            "s.yaml": holding(a="b.json"),
            "b.json": {"$defs": {"x": {"$id": "item", **INTEGER}}, "allOf": [{"$ref": "item"}]},
        },
        {"a": 1},
        {"a": "x"},
    ),
    "draft-07, and an anchor that is a file's $id": (
        {
            "s.yaml": {"$schema": DRAFT_07, **holding(a="b.json#foo")},
            "b.json": {"$schema": DRAFT_07, "$id": "#foo", **INTEGER},
        },
        {"a": 1},
        {"a": "x"},
    ),
    "a schema that extends another one by $dynamicRef": (
        {
            "s.yaml": {"$dynamicAnchor": "node", "$ref": "tree.json", "unevaluatedProperties": False},
            "tree.json": {
                "$dynamicAnchor": "node",
                "properties": {"data": True, "children": {"items": {"$dynamicRef": "#node"}}},
            },
        },
        {"children": [{"data": 1}]},
        {"children": [{"daat": 1}]},
    ),
    "a schema that extends another one by $recursiveRef": (
        {
            "s.yaml": {
                "$schema": DRAFT_2019,
                "$recursiveAnchor": True,
                "$ref": "tree.json",
                "unevaluatedProperties": False,
            },
            "tree.json": {
                "$schema": DRAFT_2019,
                "$recursiveAnchor": True,
                "properties": {"data": True, "children": {"items": {"$recursiveRef": "#"}}},
            },
        },
        {"children": [{"data": 1}]},
        {"children": [{"daat": 1}]},
    ),
    "$ref inside and $dynamicRef outside": (
        {
            "s.yaml": {
                "properties": {"a": {"$ref": "#/$defs/x", "$dynamicRef": "b.json#node"}},
                "$defs": {"x": {"minimum": 5}},
            },
            "b.json": {"$dynamicAnchor": "node", **INTEGER},
        },
        {"a": 6},
        {"a": 1},
    ),
    "a YAML alias under two bases": (
        {
            "s.yaml": (
                "properties:\n  a: &x {$ref: b.json}\n  n: {$ref: '#/$defs/q'}\n"
                "$defs:\n  q: {$id: sub/q.json, properties: {a: *x}}\n"
            ),
            "b.json": INTEGER,
            "sub/b.json": TEXT,
        },
        {"a": 1, "n": {"a": "x"}},
        {"a": 1, "n": {"a": 1}},
    ),
}


@pytest.mark.parametrize(("files", "good", "bad"), BUNDLES.values(), ids=BUNDLES)
def test_bundle_means_what_its_files_mean(tmp_path: Path, files: Files, good: JsonValue, bad: JsonValue) -> None:
    assert (is_valid(tmp_path, files, good), is_valid(tmp_path, files, bad)) == (True, False)


def test_yaml_alias_of_a_reference_inside_const_stays_what_it_is(tmp_path: Path) -> None:
    files: Files = {"s.yaml": "properties:\n  a: &x {$ref: b.json}\n  b: {const: *x}\n", "b.json": INTEGER}
    assert is_valid(tmp_path, files, {"b": {"$ref": "b.json"}})


# --- never a bug of ours ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edit",
    [
        {"files": lambda files: {key: {**each, "path": "a\0b"} for key, each in files.items()}},
        {"cases": lambda cases: [{**each, "inputMessages": _with_nul(each["inputMessages"])} for each in cases]},
    ],
    ids=["path of a file", "path in a message"],
)
def test_nul_in_a_plan_is_no_bug_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: Document) -> None:
    script = {"name": "p", "type": "code", "script": "./judge.py"}
    files: Files = {EVAL: scored(script, input_messages=with_file("q.txt")), "evals/q.txt": "?", "evals/judge.py": "#"}
    data = json.loads(text_of(compile_here(tmp_path, files)))
    data |= {key: change(data[key]) for key, change in edit.items()}
    plan = resealed(Plan.model_validate(data, by_alias=True, by_name=False))
    assert refused(tmp_path, plan, monkeypatch, "eval", "--out", "r.jsonl") != BUG


def _with_nul(messages: list[Document]) -> list[Document]:
    return [{**each, "content": [{**part, "path": "a\0b"} for part in each["content"]]} for each in messages]


@pytest.mark.parametrize("value", ["hello", "something else"])
def test_results_do_not_replace_the_plan_they_are_compared_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    plan = text_of(compile_here(tmp_path, {EVAL: scored()}))
    write_repository(tmp_path, {EVAL: scored(contains(value)), "plan.json": plan})
    monkeypatch.chdir(tmp_path)
    assert run(["eval", "evals", "--only-changed", "plan.json", "--out", "plan.json"]) == 2
    assert (tmp_path / "plan.json").read_text("utf-8") == plan


def test_suite_whose_name_is_no_unicode_is_no_bug_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_repository(tmp_path, {EVAL: scored()})
    (tmp_path / "evals" / "\udcff.yaml").write_bytes((tmp_path / EVAL).read_bytes())
    monkeypatch.chdir(tmp_path)
    assert run(["compile", "evals"]) != BUG


PRICE = 1e308

HUGE: dict[str, Files] = {
    "trials": {EVAL: scored(execution={"repeat": 10**400})},
    "trials as a float": {EVAL: scored(execution={"repeat": 1e308})},
    "workers": {EVAL: scored(), "targets.yaml": targets({**MOCK, "workers": 10**400})},
    "price": {
        EVAL: scored(execution={"repeat": 10**9}),
        "targets.yaml": targets(GPT),
        "evals/.agentv.yaml": {
            "$schema": "agentv-config-v2",
            "prices": {"gpt-5": {"input_per_mtok": PRICE, "output_per_mtok": PRICE}},
        },
    },
}


@pytest.mark.parametrize("files", HUGE.values(), ids=HUGE)
def test_estimate_of_huge_numbers_is_no_bug_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Files
) -> None:
    write_repository(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    assert run(["compile", "evals", "--estimate"]) != BUG


def test_estimate_takes_each_suite_at_its_own_prices(tmp_path: Path) -> None:
    def at(dollars: int) -> Document:
        price = {"input_per_mtok": dollars, "output_per_mtok": dollars}
        return {"$schema": "agentv-config-v2", "prices": {"gpt-5": price}}

    first: Files = {"evals/a/e.yaml": scored(), "evals/a/.agentv.yaml": at(1000), "targets.yaml": targets(GPT)}
    second: Files = {**first, "evals/b/e.yaml": scored(), "evals/b/.agentv.yaml": at(0)}
    costs = []
    for folder, files in ((tmp_path / "first", first), (tmp_path / "second", second)):
        compile_here(folder, files)
        costs.append(estimate_run(compile_paths(Selection(["evals"]), cwd=folder), workers=None).cost_usd)
    assert costs[1] == costs[0]
