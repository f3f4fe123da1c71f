"""What validation promises beside the corpus: bounded, complete, and never a traceback."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.app.workspace import read_yaml
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.documents import CheckedDocument, DocumentContext
from agentv_ci.contracts.source import Kind, Mark, Source
from agentv_ci.jsonschema.schemas import SchemaName
from agentv_ci.load.files import inspect_file
from agentv_ci.validate.document import validate
from tests.support.documents import corpus_documents, mutants

NOWHERE = Mark((0, 0), (0, 0), None)


def check(data: JsonValue, kind: Kind = "eval", path: Path = Path("/repository/x.yaml")) -> CheckedDocument:
    return validate(Source(path, path.parent, kind, data, lambda: NOWHERE), DocumentContext(read_yaml, inspect_file))


def messages(checked: CheckedDocument) -> list[str]:
    return [each.message for each in checked.diagnostics]


CASE: dict[str, Any] = {
    "id": "a",
    "expected_outcome": "x",
    "input_messages": [{"role": "user", "content": "x"}],
    "expected_messages": [],
    "evaluators": [{"name": "e", "type": "contains", "value": "x"}],
}


def test_mistakes_in_wrong_and_in_right_parts_are_reported_together() -> None:
    wrong = {**CASE, "evaluators": [{"name": "e", "type": "contains"}, {"name": "r", "type": "regex", "value": "("}]}
    checked = check({"evalcases": [{"id": 5}, wrong, {**CASE, "note": 1}]})
    assert [(each.rule, each.pointer) for each in checked.diagnostics] == [
        ("AV201", "evalcases[0].expected_outcome"),
        ("AV201", "evalcases[0].input_messages"),
        ("AV201", "evalcases[0].expected_messages"),
        ("AV201", "evalcases[1].evaluators[0].value"),
        ("AV203", "evalcases[0].id"),
        ("AV203", "evalcases[2].note"),
        ("AV301", "evalcases[2].id"),
        ("AV310", "evalcases[1].evaluators[1].value"),
    ]


def test_one_misspelt_required_key_is_one_diagnostic() -> None:
    case = {("inputmessages" if key == "input_messages" else key): value for key, value in CASE.items()}
    assert messages(check({"evalcases": [case]})) == ["unknown field 'inputmessages' (did you mean 'input_messages'?)"]


def test_both_spellings_are_accepted_everywhere() -> None:
    twin = {
        "id": "b",
        "outcome": "x",
        "inputMessages": CASE["input_messages"],
        "expectedMessages": [],
        "execution": {"timeoutSeconds": 5, "maxRetries": 1},
        "evaluators": [{"name": "c", "type": "contains", "value": "x", "caseSensitive": False, "minScore": 0.5}],
    }
    checked = check({"evalcases": [CASE, twin]})
    assert checked.diagnostics == ()


def test_keys_of_free_maps_are_never_touched() -> None:
    case = {**CASE, "metadata": {"max_retries": 1, "maxRetries": 2}}
    checked = check({"x-anchors": {"a_b": 1, "aB": 2}, "evalcases": [case]})
    assert checked.diagnostics == ()
    assert checked.document is not None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2.0, []),
        (2.5, ["'max_retries' must be an integer, not 2.5"]),
        (None, ["'max_retries' must be an integer, not null"]),
    ],
)
def test_whole_floats_are_integers_and_null_is_not_absent(value: JsonValue, expected: list[str]) -> None:
    assert messages(check({"evalcases": [{**CASE, "execution": {"max_retries": value}}]})) == expected


@pytest.mark.parametrize("data", [None, 5, "text", [], {}, {"evalcases": None}, {"evalcases": {}}, {"evalcases": [1]}])
@pytest.mark.parametrize("kind", ["eval", "targets", "config"])
def test_any_shape_is_diagnosed_without_a_crash(data: JsonValue, kind: Kind) -> None:
    checked = check(data, kind)
    assert checked.valid == (kind == "config" and data == {})


KINDS: Mapping[SchemaName, Kind] = {"eval-v2": "eval", "targets-v2": "targets"}


@settings(max_examples=150, deadline=None)
@given(sample=st.sampled_from([each for each in corpus_documents() if each[0] in KINDS]), data=st.data())
def test_every_mutant_of_the_corpus_is_diagnosed_without_a_crash(
    sample: tuple[SchemaName, Any], data: st.DataObject
) -> None:
    name, document = sample
    _, mutated = data.draw(st.sampled_from(list(mutants(document))))
    for diagnostic in check(mutated(), KINDS[name]).diagnostics:
        assert diagnostic.message
        assert (diagnostic.line, diagnostic.column) == (1, 1)
