"""`is_json`, `field_accuracy`, and the code fence around an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.base.text import unfenced
from agentv_ci.contracts.results import EvaluatorResult
from tests.evaluate.builders import assess, evaluator, fails_case, grade, plan_case
from tests.support.runs import any_text

REFERENCE = {"name": "Ann", "age": 7, "tags": ["a", "b"], "home": {"city": "Bern", "zip": None}, "ok": True}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def parse(answer: str) -> EvaluatorResult:
    return assess(evaluator("is_json"), answer)


@pytest.mark.parametrize(
    "answer",
    [
        "{}", '"text"', "-0", "1.5e3", "null", ' \r\n\t{"a": [1, {}]}\n', '"\\ud83d\\ude00"', '"\\u0000"', "1" * 5000,
        "[" * 250 + "]" * 250,
    ],
)  # fmt: skip
def test_json_scores_one(answer: str) -> None:
    found = parse(answer)
    assert (found.score, found.hits, found.misses) == (1.0, ("is JSON",), ())


@pytest.mark.parametrize(
    "answer",
    [
        "", " ", "{", "{'a': 1}", '{"a": 1,}', "{} {}", "Here: {}", "01", "+1", ".5", "0x10", "True", "NaN",
        "[Infinity]", '"\x00"', '"a\nb"', "// x\n1", "\ufeff{}", "\u00a01", "١",
    ],
)  # fmt: skip
def test_other_text_scores_zero(answer: str) -> None:
    found = parse(answer)
    assert (found.status, found.score, found.hits, len(found.misses)) == ("ok", 0.0, (), 1)


@pytest.mark.parametrize(
    ("answer", "miss"),
    [
        ("```json\n{}\n```", "it is in a code fence"),
        ("\n```json\n{\n```", "it is in a code fence"),
        ('{"a" 1}', "Expecting ':' delimiter: line 1 column 6 (char 5)"),
        ("NaN", "NaN is not JSON"),
    ],
)
def test_miss_explains_what_is_not_json(answer: str, miss: str) -> None:
    assert parse(answer).misses == (f"not JSON: {miss}",)


@settings(max_examples=50)
@given(VALUES, st.sampled_from([None, 0, 2]), st.booleans())
def test_dumped_values_are_json(value: Any, indent: int | None, escapes: bool) -> None:
    assert parse(json.dumps(value, indent=indent, ensure_ascii=escapes)).score == 1.0


@pytest.mark.parametrize(
    ("answer", "inside"),
    [
        ("```json\n1\n```", "1"),
        ("```\n1```", "1"),
        ("  ```a b c\n1\n2\n```  \n", "1\n2"),
        ("```\n```", ""),
        ("```json 1 ```", None),
        ("```\n1\n``` x", None),
        ("1", None),
    ],
)
def test_code_fence_around_the_whole_answer_is_removed(answer: str, inside: str | None) -> None:
    assert unfenced(answer) == (answer if inside is None else inside)


def compare(fields: list[str | dict[str, Any]], answer: Any, reference: Any = None, **given: Any) -> EvaluatorResult:
    """Compare fields of an answer, given as text or as a value to dump, with a reference."""
    listed = [{"path": each} if isinstance(each, str) else each for each in fields]
    reference = REFERENCE if reference is None else reference
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return assess(evaluator("field_accuracy", fields=listed, reference=reference, **given), text)


@pytest.mark.parametrize(
    ("path", "answer", "score"),
    [
        ("name", {"name": "Ann"}, 1),
        ("name", '```json\n{"name": "Ann"}\n```', 1),
        ("age", {"age": "7"}, 0),
        ("ok", {"ok": 1}, 0),
        ("tags[1]", {"tags": ["x", "b"]}, 1),
        ("tags[1]", {"tags": ["b"]}, 0),
        ("home.city", {"home": {"city": "Bern", "more": 1}}, 1),
        ("home", {"home": {"city": "Bern", "more": 1}}, 0),
        ("home.zip", {"home": {"zip": None}}, 1),
        ("home.zip", {"home": {}}, 0),
        ("home.zip", '{"home": {"zip": 1e999}}', 0),
        ("name", 5, 0),
    ],
)
def test_field_is_right_when_it_equals_the_reference(path: str, answer: Any, score: float) -> None:
    assert compare([path], answer).score == score


def test_path_leads_through_nested_lists() -> None:
    reference = {"rows": [[1, 2], [3, {"x.y": 1, "deep": [{"z": "found"}]}]]}
    assert compare(["rows[1][1].deep[0].z"], reference, reference).score == 1.0


def test_findings_name_fields_by_their_paths() -> None:
    fields: list[str | dict[str, Any]] = ["name", "home.city", {"path": "age", "required": True}, "tags[0]"]
    found = compare(fields, {"name": "Ann", "home": {}, "age": "x", "tags": [None]})
    assert (found.score, found.hits) == (0.25, ("name",))
    assert found.misses == ("home.city: missing", 'age (required): "x" instead of 7', 'tags[0]: null instead of "a"')


def test_long_values_are_shortened_in_a_miss() -> None:
    (miss,) = compare(["name"], {"name": "x" * 10_000}).misses
    assert len(miss) < 300


@pytest.mark.parametrize(("name", "age", "score"), [(1, 1, 0.5), (3, 1, 0.75), (1, 0, 1.0), (0, 1, 0.0), (0, 0, 0.0)])
def test_score_is_the_weight_of_correct_fields_over_all(name: float, age: float, score: float) -> None:
    assert compare([{"path": "name", "weight": name}, {"path": "age", "weight": age}], {"name": "Ann"}).score == score


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ('{"name": "Ann", "age": 7}', "pass"),
        ('{"name": "Ann"}', "pass"),
        ('{"age": 7}', "fail"),
        ('{"name": null, "age": 7}', "fail"),
        ("no JSON at all", "fail"),
    ],
)
def test_required_field_that_is_wrong_fails_the_case(answer: str, verdict: str) -> None:
    fields = [{"path": "name", "required": True}, {"path": "age", "weight": 0.1}]
    settings_ = evaluator("field_accuracy", fields=fields, reference=REFERENCE, min_score=0.0)
    assert grade(plan_case(settings_, threshold=0.0), answer).verdict == verdict


def test_answer_that_is_not_json_scores_zero() -> None:
    found = compare(["name"], "Ann")
    assert (found.status, found.score, found.misses[0][:10]) == ("ok", 0.0, "not JSON: ")
    assert compare(["name"], "Here:\n```json\n{}\n```").misses[0].endswith("; there is text around the code fence")
    assert not fails_case(evaluator("field_accuracy", fields=[{"path": "name"}], reference=REFERENCE), "Ann")


@pytest.mark.parametrize(
    ("expected", "status", "score"),
    [('```json\n{"a": 1, "b": [2]}\n```', "ok", 0.5), ("Hello!", "error", 0), ("", "error", 0), ("NaN", "error", 0)],
)
def test_reference_is_the_expected_answer_by_default(expected: str, status: str, score: float) -> None:
    case = plan_case(evaluator("field_accuracy", fields=[{"path": "a"}, {"path": "b[0]"}]), reference_answer=expected)
    (found,) = grade(case, '{"a": 1, "b": [3]}').results
    assert (found.status, found.score) == (status, score)
    if status == "error":
        assert found.reasoning.startswith("'reference' is not set, and the expected answer is not JSON: ")


def test_field_that_is_missing_in_the_reference_is_an_error() -> None:
    found = compare(["name", "gone", "tags[2]", "name.first"], {"name": "Ann"})
    assert found.status == "error"
    missing = "; ".join(f"field '{path}' is missing" for path in ("gone", "tags[2]", "name.first"))
    assert found.reasoning == f"{missing} in the reference"


DATE = {"match": "date"}
NEAR = {"match": "numeric_tolerance", "tolerance": 0.5}
FAR = {"match": "numeric_tolerance", "tolerance": 99}


@pytest.mark.parametrize(
    ("ours", "theirs", "field", "status", "score"),
    [
        (10, 10, {"match": "numeric_tolerance"}, "ok", 1),
        (10.5, 10, {"match": "numeric_tolerance"}, "ok", 0),
        (10.5, 10, NEAR, "ok", 1),
        (9.5, "10", NEAR, "ok", 1),
        (10.51, 10, NEAR, "ok", 0),
        ("ten", 10, FAR, "ok", 0),
        (None, 0, FAR, "ok", 0),
        (int("1" * 400), int("1" * 400), FAR, "ok", 1),
        ("2030-01-02T23:59:59Z", "2030-01-02", DATE, "ok", 1),
        ("2030-01-03", "2030-01-02", DATE, "ok", 0),
        (20300102, "2030-01-02", DATE, "ok", 0),
        ("2030-01", "2030-01", DATE, "error", 0),
        (None, None, DATE, "error", 0),
        ("about 5", "about 5", FAR, "error", 0),
    ],
)
def test_field_matches_as_its_settings_say(ours: Any, theirs: Any, field: Any, status: str, score: float) -> None:
    found = compare([{"path": "v", **field}], {"v": ours}, {"v": theirs})
    assert (found.status, found.score) == (status, score)


@settings(max_examples=50)
@given(any_text, st.sampled_from([("exact", "x"), ("numeric_tolerance", "12.5"), ("date", "2030-01-02")]))
def test_every_value_can_be_compared(value: str, match: tuple[str, str]) -> None:
    assert compare([{"path": "v", "match": match[0]}], {"v": value}, {"v": match[1]}).status == "ok"
