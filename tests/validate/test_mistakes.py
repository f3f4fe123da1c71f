"""One mistake is one diagnostic on its line, with the right suggestion."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentv_ci.app.documents.documents import read_yaml
from agentv_ci.contracts.base import short_fields
from agentv_ci.contracts.diagnostics import Diagnostic, Kind
from agentv_ci.contracts.documents import DocumentContext
from agentv_ci.contracts.evaluators import AuthoredEvaluator
from agentv_ci.contracts.source import NOWHERE, Pointer, Source
from agentv_ci.load.files import inspect_file
from agentv_ci.validate.document import validate
from agentv_ci.validate.structure import contract_for
from agentv_ci.validate.walk import mappings
from tests.support import REPOSITORY, write
from tests.validate.builders import CASE, found_in, found_of

CORPUS = REPOSITORY / "tests" / "corpus"
Document = tuple[Kind, dict[str, Any], Pointer]
"""Kind, data, and the pointer to the part whose keys are changed."""


def documents() -> Iterator[tuple[str, Document]]:
    """Yield small documents of the corpus: checking large ones takes long."""
    eval_file: Any = read_yaml((CORPUS / "checked/every-evaluator/eval.yaml").read_text("utf-8"))
    (case,) = eval_file["evalcases"]
    for each in case.pop("evaluators"):
        yield each["name"], ("eval", {"evalcases": [{**case, "evaluators": [each]}]}, ("evalcases", 0, "evaluators"))
        if (field := short_fields(AuthoredEvaluator, "type").get(each["type"])) in each:
            short = {each["type"] if key == field else key: each[key] for key in each if key != "type"}
            data = {"evalcases": [{**case, "evaluators": [short]}]}
            yield f"{each['name']} in short", ("eval", data, ("evalcases", 0, "evaluators"))
    yield "case", ("eval", eval_file, ())
    messages: Any = read_yaml((CORPUS / "valid/conversation-with-every-role/support.test.yaml").read_text("utf-8"))
    yield "messages", ("eval", {**messages, "evalcases": messages["evalcases"][:1]}, ())
    targets_file: Any = read_yaml((CORPUS / "checked/every-provider/targets.yaml").read_text("utf-8"))
    for each in targets_file["targets"]:
        target = {**each, "judge_target": each["name"]}
        target.pop("judgeTarget", None)
        yield each["name"], ("targets", {"targets": [target]}, ("targets",))
    config: Any = read_yaml((CORPUS / "valid/guideline-patterns-of-the-config/.agentv.yaml").read_text("utf-8"))
    yield "config", ("config", config | {"prices": {"m": {"input_per_mtok": 1, "output_per_mtok": 2}}}, ())


DOCUMENTS = dict(documents())
DOCUMENT = pytest.mark.parametrize(("kind", "data", "part"), DOCUMENTS.values(), ids=DOCUMENTS)


def keys(kind: Kind, data: dict[str, Any], part: Pointer) -> Iterator[tuple[Pointer, str]]:
    """Yield every key below `part` that a contract knows, with the pointer to its mapping."""
    found = {
        (way, key)
        for _, mapping, way in mappings(contract_for(kind), data)
        if way[: len(part)] == part
        for key in mapping
        # An unknown key of a validator is its setting.
        if key != "settings" and "validators" not in way
    }
    yield from sorted(found, key=repr)


def check(kind: Kind, data: Any) -> list[Diagnostic]:
    """Return the errors of a document."""
    folder = CORPUS / "checked" / "every-evaluator"
    source = Source(folder / "x.yaml", folder, kind, data, lambda: NOWHERE)
    found = validate(source, DocumentContext(read_yaml, inspect_file)).diagnostics
    return [each for each in found if each.severity == "error"]


def changed(data: dict[str, Any], way: Pointer, change: Callable[[dict[str, Any]], object]) -> Any:
    copied = copy.deepcopy(data)
    mapping: Any = copied
    for step in way:
        mapping = mapping[step]
    change(mapping)
    return copied


def shown(found: list[Diagnostic]) -> str:
    return "; ".join(f"{each.message} [{each.rule}] {each.hint or ''}" for each in found)


def misspellings(key: str) -> tuple[str, str]:
    """Return a key with one letter too many, and with two letters swapped."""
    swapped = key[:-2] + key[-1] + key[-2]
    return key + "x", swapped if swapped not in (key, "respones") else key[1:]


@DOCUMENT
def test_misspelt_key_is_one_error_with_a_suggestion(kind: Kind, data: dict[str, Any], part: Pointer) -> None:
    wrong = []
    for way, key in keys(kind, data, part):
        for misspelt in misspellings(key):
            found = check(kind, changed(data, way, lambda mapping: mapping.update({misspelt: mapping.pop(key)})))  # noqa: B023
            text = shown(found)
            if len(found) != 1 or not re.search(
                rf"unknown field '(?:\w+\.)?{re.escape(misspelt)}'.*\W{re.escape(key)}\b", text
            ):
                wrong.append(f"{way} {key} → {misspelt}: {text}")
    assert wrong == []


@DOCUMENT
def test_missing_key_or_wrong_value_is_at_most_one_error(kind: Kind, data: dict[str, Any], part: Pointer) -> None:
    wrong = []
    for way, key in keys(kind, data, part):
        for value in (..., [1], True, None):
            found = check(
                kind,
                changed(data, way, lambda each: each.pop(key) if value is ... else each.update({key: value})),  # noqa: B023
            )
            if len(found) > 1:
                wrong.append(f"{way} {key} {value}: {shown(found)}")
    assert wrong == []


@DOCUMENT
def test_missing_key_hides_no_other_mistake(kind: Kind, data: dict[str, Any], part: Pointer) -> None:
    if part[:1] != ("evalcases",):
        return
    (only,) = data["evalcases"][0]["evaluators"]
    twin = changed(data, part, lambda evaluators: evaluators.append({"name": only["name"], "type": "is_json"}))  # type: ignore[attr-defined]
    hidden = [
        (way, key)
        for way, key in keys(kind, data, part)
        if key not in ("name", "type", *short_fields(AuthoredEvaluator, "type"))
        and "AV301" not in {each.rule for each in check(kind, changed(twin, way, lambda each: each.pop(key)))}  # noqa: B023
    ]
    assert hidden == []


@pytest.mark.parametrize(
    ("right", "wrong", "meant"),
    [
        *(("evalcases:", wrong, "evalcases") for wrong in ("eval_cases:", "cases:")),
        ("[]", "[]\n    evaluators: [{name: e, type: llm-judge}]", "llm_judge"),
        ("[]", "[]\n    evaluators: [{name: e, type: containsAll, value: [x]}]", "contains_all"),
    ],
)
def test_spelling_of_other_tools_has_a_suggestion(repository: Path, right: str, wrong: str, meant: str) -> None:
    (found,) = found_of(repository, CASE.replace(right, wrong, 1))
    assert f"did you mean '{meant}'" in found.message


def test_missing_names_are_not_listed(repository: Path) -> None:
    targets = "$schema: agentv-targets-v2.2\ntargets: [{nam: a, provider: mock}, {name: [1], provider: mock}]\n"
    judged = "    evaluators: [{name: e, type: llm_judge, judge_target: missing}]\n"
    write(repository, {"targets.yaml": targets, "x.yaml": CASE + judged})
    assert not [each for each in found_in(repository, ".") if "None" in each.message or "[1]" in each.message]
