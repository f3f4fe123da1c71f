"""`schema`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentv_ci.contracts.results import EvaluatorResult
from tests.evaluate.builders import assess, evaluator, grade, plan_case

OBJECT = {"type": "object"}
PEOPLE = {
    "type": "object",
    "required": ["people"],
    "properties": {
        "people": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
                "additionalProperties": False,
            },
        }
    },
}
DRAFT_07 = "http://json-schema.org/draft-07/schema#"


def check(schema: dict[str, Any] | bool, answer: str, form: str = "json") -> EvaluatorResult:
    return assess(evaluator("schema", schema=schema, format=form), answer)


@pytest.mark.parametrize(
    ("schema", "answer", "score"),
    [
        (PEOPLE, '{"people": [{"name": "Ann", "age": 7}]}', 1),
        (PEOPLE, '{"people": [{"name": 5}]}', 0),
        ({"type": "integer"}, "2.0", 1),
        ({"type": "integer"}, "true", 0),
        ({"type": "null"}, "1e999", 0),
        ({"multipleOf": 0.01}, "19.99", 1),
        ({}, "[1, {}]", 1),
        (False, "1", 0),
        (OBJECT, "  \n{}\n ", 1),
        (OBJECT, "```json\n{}\n```", 1),
        (OBJECT, "\n\n```JSON\r\n\n{}\r\n```\r\n", 1),
        (OBJECT, '```json\n{"a": "```"}\n```', 1),
        (OBJECT, "a: 1", 0),
    ],
)
def test_answer_that_matches_scores_one(schema: dict[str, Any] | bool, answer: str, score: float) -> None:
    found = check(schema, answer)
    assert (found.status, found.score, found.hits) == ("ok", score, ("Valid",) if score else ())


def test_every_violation_is_a_miss_with_its_json_path() -> None:
    assert check(PEOPLE, '{"people": [{"name": 5}, {"age": -1, "name": "x"}, {"nick": "y"}]}').misses == (
        "$.people[0].name: 5 is not of type 'string'",
        "$.people[1].age: -1 is less than the minimum of 0",
        "$.people[2]: 'name' is a required property",
        "$.people[2]: Additional properties are not allowed ('nick' was unexpected)",
    )
    assert check(PEOPLE, "{}").misses == ("$: 'people' is a required property",)


def test_misses_are_ordered_and_bounded() -> None:
    misses = check({"items": {"type": "string"}}, json.dumps(list(range(102)))).misses
    assert [miss.partition(":")[0] for miss in misses] == [*(f"$[{number}]" for number in range(100)), "… and more"]
    assert len(check({"items": {"type": "string"}}, json.dumps(list(range(100)))).misses) == 100
    assert sum(map(len, check({"type": "object"}, json.dumps(["x" * 1000] * 1000)).misses)) < 10_000


@pytest.mark.parametrize(
    ("answer", "form", "miss"),
    [
        ("{]", "json", "not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[-Infinity]", "json", "not JSON: -Infinity is not JSON"),
        ("```json\n```", "json", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("```json\n```json\n{}\n```\n```", "json", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("\x00", "yaml", "not YAML: character U+0000 is not allowed in YAML (line 1)"),
    ],
)
def test_miss_explains_what_cannot_be_parsed(answer: str, form: str, miss: str) -> None:
    found = check(True, answer, form)
    assert (found.status, found.score, found.misses) == ("ok", 0.0, (miss,))


@pytest.mark.parametrize(
    ("schema", "answer", "score"),
    [
        (PEOPLE, "people:\n  - name: Ann\n    age: 7\n", 1),
        (PEOPLE, "people:\n  - name: 5\n", 0),
        (PEOPLE, '{"people": [{"name": "Ann"}]}', 1),
        (PEOPLE, "```yaml\npeople: []\n```", 1),
        ({"const": "NaN"}, "NaN", 1),
        ({"const": "yes"}, "yes", 1),
        ({"const": "2030-01-02"}, "2030-01-02", 1),
        ({"const": 12}, "012", 1),
        ({"type": "null"}, "", 1),
        ({"type": "string"}, "!!python/name:os.getcwd ''", 0),
    ],
)
def test_yaml_answer_is_read_as_yaml_1_2(schema: dict[str, Any], answer: str, score: float) -> None:
    assert check(schema, answer, "yaml").score == score


@pytest.mark.parametrize(
    ("dialect", "score"), [(None, 1), ("https://json-schema.org/draft/2020-12/schema", 1), (DRAFT_07, 0)]
)
def test_schema_is_read_in_its_dialect(dialect: str | None, score: float) -> None:
    schema = {"dependentRequired": {"a": ["b"]}, "dependencies": {"a": ["b", "c"]}}
    named = schema if dialect is None else {"$schema": dialect, **schema}
    assert check(named, '{"a": 1, "b": 2}').score == score


@pytest.mark.parametrize("reference", ["#/$defs/name", "#name", "https://example.com/inner"])
def test_reference_inside_the_schema_is_followed(reference: str) -> None:
    inner = {"$id": "https://example.com/inner", "type": "string"}
    schema = {"$ref": reference, "$defs": {"name": {"$anchor": "name", "type": "string"}, "inner": inner}}
    assert (check(schema, '"x"').score, check(schema, "5").score) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("schema", "answer", "score"),
    [
        ({"properties": {"a": True}, "unevaluatedProperties": False}, '{"a": 1}', 1),
        ({"properties": {"a": True}, "unevaluatedProperties": False}, '{"b": 1}', 0),
        ({"contains": {"type": "integer"}, "unevaluatedItems": False}, '[1, "a"]', 0),
        ({"patternProperties": {r"^\p{L}+$": True}, "unevaluatedProperties": False}, '{"é": 1}', 1),
        ({"patternProperties": {"^a{e}$": True}, "unevaluatedProperties": False}, '{"a{e}": 1}', 1),
        ({"$ref": "#/gone", "unevaluatedProperties": False}, "1", None),
    ],
)
def test_unevaluated_keywords_are_checked_in_another_process(schema: Any, answer: str, score: float | None) -> None:
    found = check(schema, answer)
    assert (found.status, found.score) == (("ok", score) if score is not None else ("error", 0.0))


@pytest.mark.slow
def test_check_in_another_process_ends() -> None:
    many = json.dumps({str(number): 1 for number in range(100_000)})
    found = check({"patternProperties": {"^[0-9]": True}, "unevaluatedProperties": False}, many)
    assert (found.status, found.reasoning) == (
        "error",
        "cannot check the answer with the schema: it timed out after 5 s",
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/gone"},
        {"$ref": "other.json"},
        {"$schema": DRAFT_07, "$ref": "#/definitions/gone"},
        {"properties": {"a": {"$ref": "file:///etc/hostname"}}},
        {"$ref": "#"},
        {"properties": {"a": {"pattern": "("}}},
        {"type": "nonsense"},
        {"properties": ["a"]},
        {"$id": "http://[", "$ref": "x"},
    ],
)
def test_unusable_schema_is_an_error(schema: dict[str, Any]) -> None:
    found = check(schema, '{"a": "x"}')
    assert (found.status, found.verdict) == ("error", "error")
    assert (found.reasoning == "unresolved reference in the schema: other.json") == (schema.get("$ref") == "other.json")


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        pytest.param({"type": "array", "items": {"$ref": "#"}}, "[" * 500 + "]" * 500, id="deep"),
        pytest.param(True, "[" * 100_000, id="too-deep-for-json"),
        pytest.param({"multipleOf": 0.1}, "1" + "0" * 400, id="large-number"),
        pytest.param(True, "1" * 5000, id="long-number"),
        pytest.param(OBJECT, '{"a": "\ud800"}', id="lone-surrogate"),
        pytest.param({"patternProperties": {"(a|aa)+$": False}}, '{"%s!": 1}' % ("a" * 200), id="endless-pattern"),
    ],
)
def test_unusual_answers_do_not_break_the_case(
    schema: dict[str, Any] | bool, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentv_ci.base.patterns.TIMEOUT_S", 0.2)
    case = plan_case(evaluator("schema", schema=schema, format="json"), evaluator("contains", value=answer[0]))
    assert grade(case, answer).results[1].score == 1.0
