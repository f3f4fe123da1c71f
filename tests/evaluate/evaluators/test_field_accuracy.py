"""`type: field_accuracy`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.evaluators import FieldAccuracyEvaluator
from agentv_ci.contracts.results import EvaluatorResult
from tests.evaluate.builders import assess, fails_case, grade, plan_case

REFERENCE = {"name": "Ann", "age": 7, "tags": ["a", "b"], "home": {"city": "Bern", "zip": None}, "ok": True}


def evaluator(fields: list[str | dict[str, Any]], **given: Any) -> FieldAccuracyEvaluator:
    listed = [{"path": each} if isinstance(each, str) else each for each in fields]
    return FieldAccuracyEvaluator.model_validate({"name": "f", "type": "field_accuracy", "fields": listed, **given})


def compare(fields: list[str | dict[str, Any]], answer: Any, reference: Any = None, **given: Any) -> EvaluatorResult:
    """Compare an answer, given as JSON or as text, with a reference."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return assess(evaluator(fields, reference=REFERENCE if reference is None else reference, **given), text)


def is_right(ours: Any, theirs: Any, **field: Any) -> bool:
    outcome = compare([{"path": "v", **field}], {"v": ours}, {"v": theirs})
    assert outcome.status == "ok"
    assert outcome.score in (0.0, 1.0)
    return outcome.score == 1.0


@pytest.mark.parametrize(
    ("path", "value", "score"),
    [
        ("name", {"name": "Ann"}, 1.0),
        ("name", {"name": "ann"}, 0.0),
        ("age", {"age": 7.0}, 1.0),
        ("age", {"age": "7"}, 0.0),
        ("ok", {"ok": 1}, 0.0),
        ("tags[1]", {"tags": ["x", "b"]}, 1.0),
        ("tags[1]", {"tags": ["b"]}, 0.0),
        ("tags", {"tags": ["b", "a"]}, 0.0),
        ("home.city", {"home": {"city": "Bern", "more": 1}}, 1.0),
        ("home", {"home": {"city": "Bern", "more": 1}}, 0.0),
        ("home", {"home": {"zip": None, "city": "Bern"}}, 1.0),
        ("home.zip", {"home": {"zip": None}}, 1.0),
        ("home.zip", {"home": {}}, 0.0),
        ("home.zip", {"home": None}, 0.0),
        ("home.zip", {}, 0.0),
        ("name", [], 0.0),
        ("name", 5, 0.0),
    ],
)
def test_field_is_right_when_it_is_there_and_the_same(path: str, value: Any, score: float) -> None:
    assert compare([path], value).score == score


def test_paths_reach_into_lists_of_lists() -> None:
    reference = {"rows": [[1, 2], [3, {"x.y": 1, "deep": [{"z": "found"}]}]]}
    assert compare(["rows[1][1].deep[0].z"], reference, reference).score == 1.0


def test_findings_name_fields_by_their_paths() -> None:
    fields: list[str | dict[str, Any]] = ["name", "home.city", {"path": "age", "required": True}, "tags[0]"]
    outcome = compare(fields, {"name": "Ann", "home": {}, "age": "x", "tags": [None]})
    assert (outcome.score, outcome.hits, outcome.misses) == (
        0.25,
        ("name",),
        ("home.city: missing", 'age (required): "x" instead of 7', 'tags[0]: null instead of "a"'),
    )


def test_long_values_are_quoted_by_their_ends() -> None:
    (miss,) = compare(["name"], {"name": "x" * 10_000}).misses
    assert len(miss) < 300


@pytest.mark.parametrize(
    ("weights", "score"), [((1, 1), 0.5), ((3, 1), 0.75), ((1, 0), 1.0), ((0, 1), 0.0), ((0, 0), 0.0)]
)
def test_score_is_the_weight_of_the_right_fields_over_all(weights: tuple[float, float], score: float) -> None:
    fields: list[str | dict[str, Any]] = [{"path": "name", "weight": weights[0]}, {"path": "age", "weight": weights[1]}]
    assert compare(fields, {"name": "Ann"}).score == score


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"name": "Ann", "age": 7}, "pass"),
        ({"name": "Ann"}, "pass"),
        ({"age": 7}, "fail"),
        ({"name": None, "age": 7}, "fail"),
        ("no JSON at all", "fail"),
    ],
)
def test_required_field_that_is_not_right_fails_the_case(answer: Any, verdict: str) -> None:
    fields: list[str | dict[str, Any]] = [{"path": "name", "required": True}, {"path": "age", "weight": 0.1}]
    case = plan_case(evaluator(fields, reference=REFERENCE, min_score=0.0), threshold=0.0)
    assert grade(case, answer if isinstance(answer, str) else json.dumps(answer)).verdict == verdict


def test_required_field_is_no_longer_demanded_when_negated() -> None:
    demanding: list[str | dict[str, Any]] = [{"path": "name", "required": True}]
    outcome = compare(demanding, {}, negate=True)
    assert (outcome.score, outcome.verdict) == (1.0, "pass")
    assert not fails_case(evaluator(demanding, negate=True), "{}")


def test_answer_that_is_no_json_scores_zero() -> None:
    outcome = compare(["name"], "Ann")
    assert (outcome.status, outcome.score) == ("ok", 0.0)
    assert not fails_case(evaluator(["name"]), "Ann")
    assert outcome.misses[0].startswith("not JSON: ")


def test_one_code_fence_is_taken_off() -> None:
    assert compare(["name"], '```json\n{"name": "Ann"}\n```').score == 1.0


def test_reference_is_the_expected_answer_when_none_is_given() -> None:
    case = plan_case(evaluator(["a", "b[0]"]), reference_answer='```json\n{"a": 1, "b": [2]}\n```')
    assert grade(case, '{"a": 1, "b": [3]}').score == 0.5


@pytest.mark.parametrize("expected", ["Hello!", "", "NaN"])
def test_expected_answer_that_is_no_json_is_an_error(expected: str) -> None:
    (outcome,) = grade(plan_case(evaluator(["a"]), reference_answer=expected), "{}").results
    assert outcome.status == "error"
    assert outcome.reasoning.startswith("'reference' is not set, and the expected answer is not JSON: ")


def test_reference_without_a_field_is_an_error_that_names_it() -> None:
    outcome = compare(["name", "gone", "tags[2]", "name.first"], {"name": "Ann"})
    assert (outcome.status, outcome.reasoning) == (
        "error",
        "field 'gone' is missing; field 'tags[2]' is missing; field 'name.first' is missing in the reference",
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "tolerance", "right"),
    [
        (10, 10, None, True),
        (10.5, 10, None, False),
        (10.5, 10, 0.5, True),
        (9.5, 10, 0.5, True),
        (10.51, 10, 0.5, False),
        (0.3, 0.2, 0.1, True),
        (-1, 1, 2, True),
        ("10.5", 10, 0.5, True),
        (10, "10", 0, True),
        (" 1e1 ", 10, 0, True),
        ("ten", 10, 99, False),
        ("", 0, 99, False),
        ("nan", 0, 99, False),
        ("inf", 0, 99, False),
        (True, 1, 99, False),
        (None, 0, 99, False),
        ([10], 10, 99, False),
        (-0.0, 0, 0, True),
        (1e308, -1e308, 1, False),
        (10**400, 10, 1e300, False),
    ],
)
def test_numbers_may_be_apart_by_the_tolerance(ours: Any, theirs: Any, tolerance: float | None, right: bool) -> None:
    given = {} if tolerance is None else {"tolerance": tolerance}
    assert is_right(ours, theirs, match="numeric_tolerance", **given) is right


@pytest.mark.parametrize(
    ("ours", "theirs", "right"),
    [
        ("2030-01-02", "2030-01-02", True),
        (" 2030-01-02 ", "2030-01-02", True),
        ("20300102", "2030-01-02", True),
        ("2030-W01-3", "2030-01-02", True),
        ("2030-01-03", "2030-01-02", False),
        ("2030-02-30", "2030-01-02", False),
        ("02.01.2030", "2030-01-02", False),
        ("January 2, 2030", "2030-01-02", False),
        (20300102, "2030-01-02", False),
        (None, "2030-01-02", False),
        ("", "2030-01-02", False),
        ("2030-01-02T23:59:59Z", "2030-01-02", True),
        ("2030-01-02", "2030-01-02T23:59:59Z", True),
        ("2030-01-02T23:00:00-05:00", "2030-01-02", True),
        ("2030-01-02T23:00:00-05:00", "2030-01-03", False),
        ("2030-01-02T10:00:00Z", "2030-01-02T10:00:00+00:00", True),
        ("2030-01-02T10:00:00Z", "2030-01-02T11:00:00+01:00", True),
        ("2030-01-01T23:30:00-01:00", "2030-01-02T00:30:00Z", True),
        ("2030-01-02T10:00:00Z", "2030-01-02T10:00:00+01:00", False),
        ("2030-01-02T10:00", "2030-01-02 10:00:00.000", True),
        ("2030-01-02T10:00:00.5", "2030-01-02T10:00:00", False),
        ("2030-01-02T10:00:00", "2030-01-02T10:00:00Z", True),
        ("2030-01-02T10:00:00", "2030-01-02T10:00:00+05:00", True),
        ("2030-01-02T10:00:00", "2030-01-02T11:00:00+01:00", False),
        ("0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00Z", False),
        ("9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59Z", False),
    ],
)
def test_dates_are_the_same_as_iso_8601_has_it(ours: Any, theirs: Any, right: bool) -> None:
    assert is_right(ours, theirs, match="date") is right


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.datetimes(timezones=st.timezones() | st.none(), allow_imaginary=False))
def test_every_moment_is_itself_however_it_is_written(moment: Any) -> None:
    written = moment.replace(tzinfo=None).isoformat() + (moment.strftime("%z") if moment.tzinfo else "")
    assert is_right(written, moment.isoformat(), match="date")


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.dictionaries(st.text("abc", min_size=1), st.integers() | st.text() | st.none(), min_size=1, max_size=5))
def test_the_reference_itself_scores_one(reference: dict[str, Any]) -> None:
    assert compare(list(reference), reference, reference).score == 1.0
