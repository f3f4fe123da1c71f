"""Runs of one runner, seed and case answer alike."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.validators.builtin.determinism_check import validate
from tests.validators.builders import HUGE, details, found, ids, report, run

MISMATCH = "determinism_mismatch"


def compare(one: Any, other: Any, **settings: Any) -> list[str]:
    return ids(validate(report(run(output={"v": one}), run(output={"v": other})), settings))


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_same_outputs_are_told_once_per_group() -> None:
    result = validate(report(run(), run(), run(), run(runner_key="other"), run(runner_key="other")))
    assert found(result) == [("determinism_ok", "info", None)] * 2
    assert result["issues"][0]["message"] == '3 runs have the same output: runner "model", seed 7'
    assert details(result) == {
        "groups": 2,
        "checked_pairs": 3,
        "inconsistencies": 0,
        "tolerance": 0.0,
        "fields": None,
    }


def test_case_of_runs_that_are_the_same_is_told() -> None:
    result = validate(report(run(case_id="a"), run(case_id="a")))
    assert result["issues"][0]["message"] == '2 runs have the same output: runner "model", seed 7, case "a"'


def test_every_field_that_differs_is_an_issue() -> None:
    outputs = ({"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 2, "c": 2}, {"a": 1, "b": 1, "c": 1})
    result = validate(report(*(run(output=output) for output in outputs)))
    assert found(result) == [(MISMATCH, "error", "runs.1.output.b"), (MISMATCH, "error", "runs.1.output.c")]
    assert result["issues"][0]["message"] == "run 1 differs from run 0 at 'b': 2, not 1"
    assert (details(result)["checked_pairs"], details(result)["inconsistencies"]) == (2, 2)


def test_another_runner_seed_or_case_is_another_group() -> None:
    others: tuple[dict[str, Any], ...] = (
        {"runner_key": "other"},
        {"seed": 8},
        {"case_id": "a"},
        {"case_id": "b"},
        {"runner_key": {}},
    )
    result = validate(report(run(), *(run(**each, output={"text": "no"}) for each in others)))
    assert result["issues"] == []
    assert (details(result)["groups"], details(result)["checked_pairs"]) == (6, 0)


@pytest.mark.parametrize("seed", [None, ..., "7", True, 7.0, [7], HUGE])
def test_run_without_a_seed_is_not_compared(seed: Any) -> None:
    result = validate(report(run(), run(seed=seed, output={"text": "no"})))
    assert found(result) == [("missing_seed", "warning", "runs.1.seed")]


@pytest.mark.parametrize("status", ["failed", "error", "timeout", None, HUGE])
def test_run_that_did_not_succeed_is_skipped_and_the_baseline_is_the_first_that_did(status: Any) -> None:
    result = validate(report(run(status=status, output=None), run(), run(output={"text": "no"})))
    assert found(result) == [
        ("non_success_skipped", "info", "runs.0.status"),
        (MISMATCH, "error", "runs.2.output.text"),
    ]
    assert "differs from run 1" in result["issues"][1]["message"]


def test_by_default_the_keys_are_compared_that_both_have() -> None:
    one, other = run(output={"a": 1, "only": 1, 3: 1}), run(output={"b": 2, "a": 1, 3: 2})
    assert ids(validate(report(one, other))) == ["determinism_ok"]


@pytest.mark.parametrize(
    ("one", "other"),
    [({"a": 1}, None), ("yes", "no"), ({"a": 1}, {"text": '{"a": 01}'}), ({"a": 1}, {}), ({1: "a"}, {1: "b"})],
)
def test_outputs_without_a_common_key_are_compared_as_they_are(one: Any, other: Any) -> None:
    assert found(validate(report(run(output=one), run(output=other)))) == [(MISMATCH, "error", "runs.1.output")]
    assert ids(validate(report(run(output=one), run(output=one)))) == ["determinism_ok"]


def test_fields_restrict_the_comparison_and_may_lead_into_lists() -> None:
    one = run(output={"a": [{"b": 1}], "c": 1})
    other = run(output={"a": [{"b": 1}], "c": 2})
    assert ids(validate(report(one, other), {"fields": ["a.0.b"]})) == ["determinism_ok"]
    result = validate(report(one, other), {"fields": ["c", 5, "a.0.b"]})
    assert found(result) == [(MISMATCH, "error", "runs.1.output.c")]
    assert details(result)["fields"] == ["c", "a.0.b"]


def test_field_that_one_lacks_differs_and_that_both_lack_is_the_same() -> None:
    result = validate(report(run(output={"a": None}), run(output={})), {"fields": ["a", "b", "a.0"]})
    assert found(result) == [(MISMATCH, "error", "runs.1.output.a")]
    assert result["issues"][0]["message"] == "run 1 differs from run 0 at 'a': nothing, not null"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (True, True),
        (None, None),
        ([1, {"a": [2.0]}], [1.0, {"a": [2]}]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ((1, 2), [1, 2]),
        (float("nan"), float("nan")),
        (float("inf"), float("inf")),
        (10**400, 10**400),
        (nested(150), nested(150)),
    ],
)
def test_values_are_the_same(one: Any, other: Any) -> None:
    assert compare(one, other) == ["determinism_ok"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (0, None),
        (1, "1"),
        (1, 1.0000001),
        ([1], [1, 2]),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, [1]),
        (float("nan"), 1.0),
        (float("inf"), float("-inf")),
        (10**400, 10**400 + 1),
        (10**400, 1.5),
        (object(), object()),
        (nested(2000), nested(2000)),
    ],
)
def test_values_are_not_the_same(one: Any, other: Any) -> None:
    assert compare(one, other) == [MISMATCH]


@pytest.mark.parametrize(
    ("one", "other", "tolerance", "expected"),
    [
        (1.0, 3.0, 5.0, "determinism_ok"),
        (0.3, 0.1, 0.2, "determinism_ok"),
        (0.3, 0.1, 0.199, MISMATCH),
        ([{"a": 1}], [{"a": 2}], 1, "determinism_ok"),
        (1, True, 5, MISMATCH),
        (10**400, 10**400 + 1, 1, "determinism_ok"),
        (10**400, 1.5, 1e308, MISMATCH),
        (float("nan"), 1, 1e308, MISMATCH),
        (float("inf"), 1, 1e308, MISMATCH),
    ],
)
def test_tolerance_is_the_largest_difference_of_numbers(one: Any, other: Any, tolerance: Any, expected: str) -> None:
    assert compare(one, other, tolerance=tolerance) == [expected]


@pytest.mark.parametrize("tolerance", [None, True, "1", -1, float("inf"), float("nan"), HUGE, [1]])
def test_tolerance_of_a_wrong_form_is_none(tolerance: Any) -> None:
    result = validate(report(run(output={"v": 1}), run(output={"v": 1.5})), {"tolerance": tolerance})
    assert ids(result) == [MISMATCH]
    assert details(result)["tolerance"] == 0.0


@pytest.mark.parametrize("fields", [None, [], "v", {"v": 1}, [1, None]])
def test_fields_of_a_wrong_form_are_all(fields: Any) -> None:
    result = validate(report(run(output={"v": 1}), run(output={"v": 2})), {"fields": fields})
    assert ids(result) == [MISMATCH]
    assert details(result)["fields"] is None
