"""`type: schema`."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Literal

import pytest

from agentv_ci.contracts.evaluators import ContainsEvaluator
from agentv_ci.contracts.plan import PlanSchemaEvaluator
from agentv_ci.contracts.results import EvaluatorResult
from tests.evaluate.builders import assess, grade, plan_case
from tests.support import REPOSITORY

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
NESTED = {"type": "array", "items": {"$ref": "#"}}
HANGS_S = 120
"""A test that takes so long would never end."""
DRAFT_07 = "http://json-schema.org/draft-07/schema#"


def validator(schema: dict[str, Any] | bool, form: Literal["json", "yaml"] = "json") -> PlanSchemaEvaluator:
    return PlanSchemaEvaluator(name="s", schema_=schema, format=form)


def check(schema: dict[str, Any] | bool, answer: str, form: Literal["json", "yaml"] = "json") -> EvaluatorResult:
    return assess(validator(schema, form), answer)


@pytest.mark.parametrize(
    ("schema", "answer", "score"),
    [
        (PEOPLE, '{"people": [{"name": "Ann", "age": 7}]}', 1.0),
        (PEOPLE, '{"people": []}', 1.0),
        (PEOPLE, '{"people": [{"name": 5}]}', 0.0),
        ({"type": "string"}, '"text"', 1.0),
        ({"type": "null"}, "null", 1.0),
        ({"type": "integer"}, "2.0", 1.0),
        ({"type": "integer"}, "true", 0.0),
        ({}, "[1, {}]", 1.0),
        (True, "[1, {}]", 1.0),
        (False, "1", 0.0),
        (OBJECT, "  \n{}\n ", 1.0),
    ],
)
def test_answer_scores_one_when_the_schema_accepts_it(schema: dict[str, Any] | bool, answer: str, score: float) -> None:
    assert check(schema, answer).score == score


def test_hit_says_valid_when_the_schema_accepts() -> None:
    outcome = check(OBJECT, "{}")
    assert (outcome.verdict, outcome.hits, outcome.misses) == ("pass", ("Valid",), ())


def test_every_violation_is_a_miss_with_its_json_path() -> None:
    answer = '{"people": [{"name": 5}, {"age": -1, "name": "x"}, {"nick": "y"}]}'
    outcome = check(PEOPLE, answer)
    assert (outcome.score, outcome.hits, outcome.misses) == (
        0.0,
        (),
        (
            "$.people[0].name: 5 is not of type 'string'",
            "$.people[1].age: -1 is less than the minimum of 0",
            "$.people[2]: 'name' is a required property",
            "$.people[2]: Additional properties are not allowed ('nick' was unexpected)",
        ),
    )


def test_violation_of_the_whole_answer_stands_at_the_root() -> None:
    assert check(PEOPLE, "{}").misses == ("$: 'people' is a required property",)


@pytest.mark.parametrize(
    "answer",
    [
        "```json\n{}\n```",
        "```\n{}\n```",
        "```JSON\n{}\n```\n",
        "\n\n```json\n{}\n```\n\n",
        "```json\r\n{}\r\n```\r\n",
        "```json\n\n{}\n\n```",
        '```json\n{"a": "```"}\n```',
        "```json\n{}```",
    ],
)
def test_one_code_fence_is_taken_off(answer: str) -> None:
    assert check(OBJECT, answer).score == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "```json\n```json\n{}\n```\n```",
        "```json\n{}\n```\n```json\n{}\n```",
        "```json\n{}",
        "{}\n```",
        "Here you are: {}",
        "{} {}",
        "{'a': 1}",
        "{a: 1}",
        '{"a": 1,}',
        "",
        "```json\n```",
    ],
)
def test_answer_scores_zero_when_it_is_not_json(answer: str) -> None:
    outcome = check(True, answer)
    assert (outcome.status, outcome.score, outcome.verdict) == ("ok", 0.0, "fail")


def test_miss_says_where_the_answer_stops_being_json() -> None:
    assert check(True, "{]").misses == (
        "not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    )


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_constant_is_not_json(constant: str) -> None:
    assert check(True, f"[{constant}]").misses == (f"not JSON: {constant} is not JSON",)


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("people:\n  - name: Ann\n    age: 7\n", 1.0),
        ("people: [{name: yes}]", 1.0),
        ("people:\n  - name: 5\n", 0.0),
        ('{"people": [{"name": "Ann"}]}', 1.0),
        ("```yaml\npeople: []\n```", 1.0),
    ],
)
def test_yaml_answer_is_checked_like_json(answer: str, score: float) -> None:
    assert check(PEOPLE, answer, "yaml").score == score


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ({"const": "NaN"}, "NaN"),
        ({"const": {"a": "Infinity"}}, "{a: Infinity}"),
        ({"const": ["-Infinity"]}, "[-Infinity]"),
        ({"const": "yes"}, "yes"),
        ({"const": "2030-01-02"}, "2030-01-02"),
        ({"const": 12}, "012"),
        ({"const": 10}, "0o12"),
        ({"type": "null"}, ""),
        ({"type": "null"}, "~"),
        ({"type": "string"}, "plain words"),
    ],
)
def test_yaml_answer_is_read_as_yaml_1_2(schema: dict[str, Any], answer: str) -> None:
    assert check(schema, answer, "yaml").score == 1.0


def test_miss_says_what_is_wrong_when_the_answer_is_not_yaml() -> None:
    outcome = check(True, "\x00", "yaml")
    assert (outcome.score, outcome.misses) == (0.0, ("not YAML: character U+0000 is not allowed in YAML (line 1)",))


def test_yaml_is_not_taken_for_json() -> None:
    assert check(OBJECT, "a: 1").score == 0.0


def test_tags_in_a_yaml_answer_build_nothing() -> None:
    assert check({"type": "string"}, "!!python/name:os.getcwd ''", "yaml").score == 0.0


@pytest.mark.parametrize(
    ("dialect", "score"),
    [
        (None, 1.0),
        ("https://json-schema.org/draft/2020-12/schema", 1.0),
        (DRAFT_07, 0.0),
    ],
)
def test_schema_is_read_in_the_dialect_it_names(dialect: str | None, score: float) -> None:
    schema = {"dependentRequired": {"a": ["b"]}, "dependencies": {"a": ["b", "c"]}}
    named = schema if dialect is None else {"$schema": dialect, **schema}
    assert check(named, '{"a": 1, "b": 2}').score == score


def test_tuple_items_are_understood_in_draft_07() -> None:
    schema = {"$schema": DRAFT_07, "items": [{"type": "string"}, {"type": "integer"}]}
    assert check(schema, '["a", "b"]').misses == ("$[1]: 'b' is not of type 'integer'",)


@pytest.mark.parametrize(
    ("reference", "score"), [("#/$defs/name", 1.0), ("#name", 1.0), ("https://example.com/inner", 1.0)]
)
def test_reference_is_followed_when_the_schema_holds_it(reference: str, score: float) -> None:
    schema = {
        "$ref": reference,
        "$defs": {
            "name": {"$anchor": "name", "type": "string"},
            "inner": {"$id": "https://example.com/inner", "type": "string"},
        },
    }
    assert check(schema, '"x"').score == score


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/gone"},
        {"$ref": "#gone"},
        {"$ref": "other.json"},
        {"$ref": "https://example.com/schema.json"},
        {"$schema": DRAFT_07, "$ref": "#/definitions/gone"},
        {"properties": {"a": {"$ref": "file:///etc/hostname"}}},
    ],
)
def test_unresolvable_reference_is_an_error_and_no_zero(schema: dict[str, Any]) -> None:
    outcome = check(schema, '{"a": 1}')
    assert (outcome.status, outcome.verdict) == ("error", "error")


def test_error_names_the_reference_that_leads_nowhere() -> None:
    assert check({"$ref": "other.json"}, "1").reasoning == "unresolved reference in the schema: other.json"


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        pytest.param(NESTED, "[" * 500 + "]" * 500, id="deep"),
        pytest.param(True, "[" * 100_000, id="too-deep-for-json"),
        pytest.param({"multipleOf": 0.1}, "1" + "0" * 400, id="large-number"),
        pytest.param(True, "1" * 5000, id="long-number"),
        pytest.param({"type": "object"}, '{"a": "\ud800"}', id="lone-surrogate"),
    ],
)
def test_no_answer_breaks_the_run(schema: dict[str, Any] | bool, answer: str) -> None:
    case = plan_case(validator(schema), ContainsEvaluator(name="c", type="contains", value=answer[0]))
    assert grade(case, answer).results[1].score == 1.0


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"$ref": "#"}, id="endless"),
        pytest.param({"pattern": "("}, id="pattern"),
        pytest.param({"type": "nonsense"}, id="unknown type"),
        pytest.param({"type": 12}, id="type"),
        pytest.param({"items": ["string"]}, id="items"),
        pytest.param({"$id": "http://[", "$ref": "x"}, id="id"),
    ],
)
def test_schema_that_cannot_be_used_is_an_error_and_no_crash(schema: dict[str, Any]) -> None:
    assert check(schema, '["a"]' if "items" in schema else '"a"').status == "error"


ENDLESS = """
from agentv_ci.contracts.plan import PlanSchemaEvaluator
from tests.evaluate.builders import assess

for schema, answer in (
    ({"pattern": "(a|aa)+$"}, '"%s!"'),
    ({"patternProperties": {"(a|aa)+$": False}}, '{"%s!": 1}'),
):
    evaluator = PlanSchemaEvaluator(name="s", schema_=schema, format="json")
    print(assess(evaluator, answer % ("a" * 200)).status)
"""


def test_pattern_inside_a_schema_does_not_hold_up_the_run() -> None:
    # In a process of its own: what holds it up cannot be interrupted from inside.
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=HANGS_S
    )
    assert done.stdout == "error\nerror\n"


SLOW = "^(a|a)*$"


@pytest.mark.parametrize(
    "dialect", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
)
@pytest.mark.parametrize(
    "inside",
    [
        {"$ref": "#"},
        {"$ref": "urn:part"},
        {"$ref": "#/definitions/part"},
    ],
)
def test_schema_that_names_its_dialect_is_bounded_in_every_part(dialect: str, inside: dict[str, str]) -> None:
    """What is referred to, and says its `$schema`, as parts of a bundle do."""
    key = "$id"
    schema = {
        "$schema": dialect,
        key: "urn:whole",
        "pattern": SLOW,
        "definitions": {"part": {"$schema": dialect, key: "urn:part", "pattern": SLOW}},
        "items": inside,
    }
    outcome = check(schema, json.dumps(["a" * 60 + "!"]))
    assert (outcome.status, outcome.reasoning) == ("error", "a pattern of the schema took longer than 2 s")
