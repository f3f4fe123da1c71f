"""The digest of a case changes with what can change its result, and `--diff` gives the reasons."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import rfc8785

from agentv_ci.app.documents.documents import read_yaml
from agentv_ci.compile.diff import diff
from agentv_ci.contracts.base import short_fields
from agentv_ci.contracts.evaluators import AuthoredEvaluator
from agentv_ci.contracts.plan import Plan
from tests.compile.builders import (
    EVAL,
    MOCK,
    Document,
    case,
    compile_here,
    contains,
    evals,
    rich,
    targets,
    text_of,
    with_file,
)

Repository = dict[str, Any]
Change = Callable[[Repository], object]

GPT = {"name": "default", "provider": "openai", "model": "gpt-5", "api_key": "${{ KEY }}"}
CHANGES: dict[str, Document] = read_yaml(Path(__file__).with_name("changes.yaml").read_text("utf-8"))  # type: ignore[assignment]
SETTINGS: list[Document] = read_yaml(Path(__file__).with_name("settings.yaml").read_text("utf-8"))  # type: ignore[assignment]
COST = {"name": "cheap", "type": "cost", "max_usd": 1}


def compiled(files: Repository) -> Plan:
    with TemporaryDirectory() as folder:
        return compile_here(Path(folder), files)


def reasons(before: Plan, after: Plan, case_id: str = "one") -> list[str]:
    """Return why the case changed; its digest changes if and only if there is a reason."""
    found = [reason for each in diff(before, after).changed if each.id == case_id for reason in each.reasons]
    old, new = ({each.id: each.digest for each in plan.cases}[case_id] for plan in (before, after))
    assert (old != new) == bool(found)
    return found


@cache
def unchanged() -> Plan:
    return compiled(rich())


def part(files: Repository, where: str) -> Document:
    """Return the suite, its case `one`, its question, or the evaluator or target of a name."""
    kind, _, name = where.partition(" ")
    asked = next(each for each in files[EVAL]["evalcases"] if each["id"] == "one")
    if kind in ("evaluator", "target"):
        listed = asked["evaluators"] if kind == "evaluator" else files["targets.yaml"]["targets"]
        return next(each for each in listed if each["name"] == name)
    found: Document = {"suite": files[EVAL], "case": asked, "question": asked["input_messages"][1]}[kind]
    return found


def moved_script(files: Repository) -> None:
    for name in ("judge.py", "x.json", "y.json"):
        files[f"evals/scripts/{name}"] = files.pop(f"evals/{name}")
    part(files, "evaluator p").update(script="scripts/judge.py", files=["scripts/x.json", "scripts/y.json"])


def spelled_otherwise(files: Repository) -> None:
    found = part(files, "case")
    found["outcome"] = found.pop("expected_outcome")
    found["inputMessages"] = found.pop("input_messages")
    part(files, "evaluator k")["judgeTarget"] = part(files, "evaluator k").pop("judge_target")
    part(files, "evaluator p")["type"] = "code_judge"


def evaluators_in_short(files: Repository) -> None:
    fields = short_fields(AuthoredEvaluator, "type")
    evaluators = part(files, "case")["evaluators"]
    for index, each in enumerate(evaluators):
        if (field := fields.get(each["type"])) in each:
            kind = each["type"]
            evaluators[index] = {kind if key == field else key: each[key] for key in each if key != "type"}
    assert sum("type" not in each for each in evaluators) > 5


def with_defaults(files: Repository) -> None:
    content = part(files, "question")["content"]
    content[0] = {"type": "text", "value": content[0]}
    part(files, "case")["execution"] = {"threshold": 0.8, "target": "default"}
    part(files, "evaluator c").update({"weight": 1, "required": False, "negate": False, "case_sensitive": True})
    part(files, "evaluator u")["args_match"] = "exact"


def schema_inline(files: Repository) -> None:
    part(files, "evaluator s")["schema_inline"] = files.pop("evals/schema.json")
    del part(files, "evaluator s")["schema_file"]


def renamed_target(files: Repository) -> None:
    part(files, "target default")["name"] = "renamed"
    files[EVAL]["target"] = "renamed"


def evaluators_of_the_file(files: Repository) -> None:
    files[EVAL]["execution"] = {"evaluators": part(files, "case").pop("evaluators")}


REASONS: Mapping[str, tuple[Change, list[str]]] = {
    "new neighbours": (
        lambda files: files[EVAL].update(evalcases=[case("zero"), *files[EVAL]["evalcases"], case("three")]),
        [],
    ),
    "path of the suite": (lambda files: files.update({"evals/renamed.yaml": files.pop(EVAL)}), []),
    "spellings": (spelled_otherwise, []),
    "evaluators in short": (evaluators_in_short, []),
    "explicit defaults": (with_defaults, []),
    "evaluators of the file": (evaluators_of_the_file, []),
    "name of the target": (renamed_target, []),
    "inline prompt": (lambda files: part(files, "evaluator j").update(prompt=files.pop("evals/judge.md")), []),
    "paths of the script": (moved_script, []),
    "inline schema": (schema_inline, []),
    "text": (lambda files: part(files, "question")["content"].insert(0, "."), ["input message 2 text changed"]),
    "one more turn": (
        lambda files: part(files, "case")["input_messages"].append({"role": "user", "content": "More."}),
        ["input message 3 added"],
    ),
    "one file less": (
        lambda files: part(files, "question")["content"].pop(),
        ["file evals/question.txt removed from input message 2"],
    ),
    "expected answer": (
        lambda files: part(files, "case")["expected_messages"][1].update(content="changed"),
        ["expected message 2 text changed"],
    ),
    "expected call": (
        lambda files: part(files, "case")["expected_messages"][0]["tool_calls"][0].update(input={"q": 1}),
        ["expected message 1 tool calls changed"],
    ),
    "order of evaluators": (lambda files: part(files, "case")["evaluators"].reverse(), ["order of evaluators changed"]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_reasons_for_a_change_of_a_part(change: Document) -> None:
    files = rich()
    (where, given), (_, expected) = change.items()
    if "/" in where:
        files[where] = given
    else:
        part(files, where).update(given)
    assert reasons(unchanged(), compiled(files)) == expected


@pytest.mark.parametrize(("change", "expected"), REASONS.values(), ids=REASONS)
def test_change_has_reasons_if_it_can_change_the_result(change: Change, expected: list[str]) -> None:
    files = rich()
    change(files)
    assert files != rich()
    assert reasons(unchanged(), compiled(files)) == expected


def scored(*evaluators: Document, target: Document = MOCK, **given: Any) -> Repository:
    asked = case(evaluators=list(evaluators or [contains()]), **given)
    return {EVAL: evals(asked), "targets.yaml": targets(target)}


@pytest.mark.parametrize("change", SETTINGS, ids=lambda change: f"{change['target']['provider']} {change['set']}")
def test_settings_count_if_they_can_change_an_answer(change: Document) -> None:
    target = change["target"]
    before, after = (compiled(scored(target=each)) for each in (target, {**target, **change["set"]}))
    assert reasons(before, after) == change["reasons"]


def composite(*members: Document, **given: Any) -> Document:
    return {"name": "k", "type": "composite", "evaluators": list(members), **given}


def weighed(**weights: int) -> Document:
    return composite(*(contains(name, name=name, weight=weight) for name, weight in weights.items()))


def rubric(*rubrics: Any) -> Document:
    return {"name": "k", "type": "rubric", "rubrics": list(rubrics)}


def criterion(name: str, **given: Any) -> Document:
    return {"id": name, "description": "Is short", **given}


def expecting(content: Any) -> Repository:
    return scored(expected_messages=[{"role": "assistant", "content": content}])


def scripted(script: str, /, **files: str) -> Repository:
    given = {"name": "p", "type": "code", "script": f"./{script}", "files": [*files]}
    return scored(given) | {f"evals/{name}": text for name, text in {script: "#", **files}.items()}


def attaching(name: str) -> Repository:
    return {EVAL: evals(with_file(name, evaluators=[contains()])), f"evals/{name}": "text"}


def shown(*blocks: tuple[str, str], **files: str) -> Repository:
    """Return a case that shows images and documents, given by their types and values."""
    content = [{"type": kind, "value": value} for kind, value in blocks]
    asked = case(input_messages=[{"role": "user", "content": content}], evaluators=[contains()])
    return {EVAL: evals(asked), **{f"evals/{name}.pdf": f"%PDF-{text}" for name, text in files.items()}}


def priced(name: str, dollars: float, model: str = "gpt-5", evaluator: Document = COST) -> Repository:
    known = {each: {"input_per_mtok": 7, "output_per_mtok": 1} for each in ("gpt-5", "gpt-4.1-2025-04-14")}
    prices = {**known, name: {"input_per_mtok": dollars, "output_per_mtok": 1}}
    config = {"$schema": "agentv-config-v2", "prices": prices}
    return scored(evaluator, target={**GPT, "model": model}) | {"evals/.agentv.yaml": config}


PAIRS: dict[str, tuple[Repository, Repository, list[str]]] = {
    "members": (
        scored(composite(contains("a", name="m"), contains("x", name="n"))),
        scored(composite(contains("b", name="m"), contains("x", name="n", weight=2))),
        ["evaluator 'k' member 'm' value a → b", "evaluator 'k' member 'n' weight 1 → 2"],
    ),
    "weights in order, without those of removed members": (
        scored(weighed(d=2, c=2, b=2, a=2)),
        scored(weighed(d=3, c=3, b=3)),
        ["evaluator 'k' member 'a' removed", *(f"evaluator 'k' member '{name}' weight 2 → 3" for name in "dcb")],
    ),
    "implied aggregator": (scored(weighed(a=1, b=1)), scored(weighed(a=1)), ["evaluator 'k' member 'b' removed"]),
    "rubrics": (
        scored(rubric(*(criterion(name) for name in ("weighed", "required", "worded", "gone")))),
        scored(
            rubric(
                criterion("weighed", weight=5),
                criterion("required", required=False),
                criterion("worded", description="Is brief"),
                "Is new",
            )
        ),
        [
            "evaluator 'k' rubric 'weighed' weight 1 → 5",
            "evaluator 'k' rubric 'required' required true → false",
            "evaluator 'k' rubric 'worded' description changed",
            "evaluator 'k' rubric 'gone' removed",
            "evaluator 'k' rubric 'rubric-4' added",
        ],
    ),
    "renamed file": (attaching("a.md"), attaching("b.md"), ["file evals/a.md renamed to evals/b.md"]),
    "changed document": (
        shown(("document", "a.pdf"), a="1"),
        shown(("document", "a.pdf"), a="2"),
        ["document evals/a.pdf changed"],
    ),
    "renamed document": (
        shown(("document", "a.pdf"), a="1"),
        shown(("document", "b.pdf"), b="1"),
        ["document evals/a.pdf renamed to evals/b.pdf"],
    ),
    "document as a text": (
        shown(("document", "a.pdf"), a="1"),
        shown(("file", "a.pdf"), a="1"),
        ["document evals/a.pdf removed from input message 1", "file evals/a.pdf added to input message 1"],
    ),
    "another image": (
        shown(("image", "https://x.org/a.png")),
        shown(("image", "https://x.org/b.png")),
        [f"image https://x.org/{what} input message 1" for what in ("a.png removed from", "b.png added to")],
    ),
    "order of keys in an answer": (expecting({"a": 1, "b": 2}), expecting({"b": 2, "a": 1}), []),
    "1 and true in an answer": (expecting({"a": 1}), expecting({"a": True}), ["expected message 1 changed"]),
    "files of one name": (
        scripted("judge.py", **{"x/d.json": "1", "y/d.json": "2"}),
        scripted("judge.py", **{"x/d.json": "2", "y/d.json": "1"}),
        ["evaluator 'p' file evals/x/d.json changed", "evaluator 'p' file evals/y/d.json changed"],
    ),
    "path of a file relative to its script": (
        scripted("judge.py", **{"d.json": "1"}),
        scripted("judge.py", **{"sub/d.json": "1"}),
        ["evaluator 'p' file evals/d.json removed", "evaluator 'p' file evals/sub/d.json added"],
    ),
    "moved script with a changed file": (
        scripted("judge.py", **{"d.json": "1"}),
        scripted("s/judge.py", **{"s/d.json": "2"}),
        ["evaluator 'p' file evals/s/d.json changed"],
    ),
    "another model with another price": (priced("x", 1), priced("x", 1, "x"), ["target model gpt-5 → x"]),
    "new cost limit": (
        priced("x", 1, "gpt-5", contains()),
        priced("x", 1),
        ["evaluator 'c' removed", "evaluator 'cheap' added"],
    ),
    "new time limit": (
        scored(target={**MOCK, "delay_ms": 5}),
        scored(contains(), {"name": "fast", "type": "latency", "max_ms": 9}, target={**MOCK, "delay_ms": 5}),
        ["evaluator 'fast' added"],
    ),
}


@pytest.mark.parametrize(("before", "after", "expected"), PAIRS.values(), ids=PAIRS)
def test_reasons_for_two_plans(before: Repository, after: Repository, expected: list[str]) -> None:
    assert reasons(compiled(before), compiled(after)) == expected


@pytest.mark.parametrize(
    ("name", "model", "evaluator", "expected"),
    [
        ("gpt-5", "gpt-5", COST, ["prices changed"]),
        ("gpt-5", "gpt-5-2025-08-07", COST, ["prices changed"]),
        ("gpt-4.1", "gpt-4.1-2025-04-14", COST, []),
        ("other", "gpt-5", COST, []),
        ("gpt-5", "gpt-5", contains(), []),
    ],
)
def test_price_counts_if_it_can_change_a_cost(name: str, model: str, evaluator: Document, expected: list[str]) -> None:
    before, after = (compiled(priced(name, dollars, model, evaluator)) for dollars in (1, 2))
    assert reasons(before, after) == expected


def test_cases_are_added_and_removed_but_not_by_moving() -> None:
    old, new = compiled({EVAL: evals(case("a"), case("b"))}), compiled({EVAL: evals(case("a"), case("c"))})
    moved_cases = compiled({"evals/other/b.yaml": evals(case("a"), case("b"))})
    found = diff(old, new)
    assert [(each.id, each.suite) for each in found.added] == [("c", EVAL)]
    assert [(each.id, each.suite) for each in found.removed] == [("b", EVAL)]
    assert [*diff(old, moved_cases)] == [("added", ()), ("removed", ()), ("changed", ())]
    twice = compiled({EVAL: evals(case("a")), "evals/z.yaml": evals(case("a"))})
    once = compiled({"evals/c.yaml": evals(case("a"))})
    assert (len(diff(twice, once).removed), len(diff(once, twice).added)) == (1, 1)


def test_digest_of_a_plan_is_that_of_everything_else() -> None:
    plan = json.loads(text_of(compiled(rich("Grüße 😀"))))
    digest = plan.pop("digest")
    assert digest == hashlib.sha256(rfc8785.dumps(plan)).hexdigest()
