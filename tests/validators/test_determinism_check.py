"""`determinism_check`: runs of one runner, seed and case have the same output."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.validators.builtin.determinism_check import validate
from tests.validators.builders import HUGE, details, found, ids, report, run

SAME, MISMATCH = "determinism_ok", "determinism_mismatch"


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_equal_outputs_are_reported_once_per_group() -> None:
    result = validate(report(run(), run(), run(), run(case_id="a"), run(case_id="a")))
    assert found(result) == [(SAME, "info", None)] * 2
    assert [each["message"] for each in result["issues"]] == [
        '3 runs have the same output: runner "model", seed 7',
        '2 runs have the same output: runner "model", seed 7, case "a"',
    ]
    figures = {"groups": 2, "checked_pairs": 3, "inconsistencies": 0, "tolerance": 0.0, "fields": None}
    assert details(result) == figures


def test_every_field_that_differs_is_an_issue() -> None:
    outputs = ({"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 2, "c": 2}, {"a": 1, "b": 1, "c": 1})
    result = validate(report(*(run(output=output) for output in outputs)))
    assert found(result) == [(MISMATCH, "error", "runs.1.output.b"), (MISMATCH, "error", "runs.1.output.c")]
    assert result["issues"][0]["message"] == "run 1 differs from run 0 at 'b': 2, not 1"
    assert (details(result)["checked_pairs"], details(result)["inconsistencies"]) == (2, 2)


def test_runs_of_another_runner_seed_or_case_are_not_compared() -> None:
    others: tuple[dict[str, Any], ...] = ({"runner_key": "other"}, {"seed": 8}, {"case_id": "a"}, {"runner_key": {}})
    result = validate(report(run(), *(run(**each, output={"text": "no"}) for each in others)))
    assert result["issues"] == []
    assert (details(result)["groups"], details(result)["checked_pairs"]) == (5, 0)


@pytest.mark.parametrize("key", ["case_id", "runner_key"])
@pytest.mark.parametrize("value", [..., None, [], {}])
def test_runs_without_a_case_or_runner_are_not_those_of_one_called_unknown(key: str, value: Any) -> None:
    named = [run(**{key: "unknown"}, output={"text": "yes"})] * 2
    result = validate(report(*named, *[run(**{key: value}, output={"text": "no"})] * 2))
    assert found(result) == [(SAME, "info", None)] * 2
    assert ["unknown" in each["message"] for each in result["issues"]] == [True, False]


@pytest.mark.parametrize("seed", [None, ..., "7", True, 7.0, HUGE])
def test_run_without_a_seed_is_not_compared(seed: Any) -> None:
    result = validate(report(run(), run(seed=seed, output={"text": "no"})))
    assert found(result) == [("missing_seed", "warning", "runs.1.seed")]
    assert result["issues"][0]["message"] == "run 1 is not compared: its seed is missing"


@pytest.mark.parametrize("status", ["failed", "error", None, HUGE])
def test_runs_are_compared_with_the_first_success(status: Any) -> None:
    result = validate(report(run(status=status, output=None), run(), run(output={"text": "no"})))
    skipped = ("non_success_skipped", "info", "runs.0.status")
    assert found(result) == [skipped, (MISMATCH, "error", "runs.2.output.text")]
    assert "differs from run 1" in result["issues"][1]["message"]


def test_common_keys_are_compared_by_default() -> None:
    one, other = run(output={"a": 1, "only": 1, 3: 1}), run(output={"b": 2, "a": 1, 3: 2})
    assert ids(validate(report(one, other))) == [SAME]


@pytest.mark.parametrize(("one", "other"), [({"a": 1}, None), ("yes", "no"), ({"a": 1}, {}), ({1: "a"}, {1: "b"})])
def test_outputs_without_a_common_key_are_compared_as_a_whole(one: Any, other: Any) -> None:
    assert found(validate(report(run(output=one), run(output=other)))) == [(MISMATCH, "error", "runs.1.output")]
    assert ids(validate(report(run(output=one), run(output=one)))) == [SAME]


@pytest.mark.parametrize(
    ("fields", "issues", "used"),
    [
        (["a.0.b"], [(SAME, "info", None)], ["a.0.b"]),
        (["c", 5, "a.0.b"], [(MISMATCH, "error", "runs.1.output.c")], ["c", "a.0.b"]),
        (["d", "e", "d.0"], [(MISMATCH, "error", "runs.1.output.d")], ["d", "e", "d.0"]),
        *((wrong, [(MISMATCH, "error", "runs.1.output.c")], None) for wrong in (None, [], "a", {"a": 1}, [1, None])),
    ],
)
def test_fields_limit_the_comparison(fields: Any, issues: list[Any], used: list[str] | None) -> None:
    one, other = run(output={"a": [{"b": 1}], "c": 1, "d": None}), run(output={"a": [{"b": 1}], "c": 2})
    result = validate(report(one, other), {"fields": fields})
    assert (found(result), details(result)["fields"]) == (issues, used)


def test_missing_field_is_nothing_in_a_message() -> None:
    result = validate(report(run(output={"a": None}), run(output={})), {"fields": ["a"]})
    assert result["issues"][0]["message"] == "run 1 differs from run 0 at 'a': nothing, not null"


@pytest.mark.parametrize(
    ("one", "other", "tolerance", "expected"),
    [
        (1, 1.0, 0, SAME),
        ([1, {"a": [2.0], "b": 2}], [1.0, {"b": 2, "a": [2]}], 0, SAME),
        ((1, 2), [1, 2], 0, SAME),
        (float("nan"), float("nan"), 0, SAME),
        (10**400, 10**400, 0, SAME),
        (nested(150), nested(150), 0, SAME),
        (1, True, 0, MISMATCH),
        (0, None, 0, MISMATCH),
        (1, 1.0000001, 0, MISMATCH),
        ({"a": 1}, {"a": 1, "b": 2}, 0, MISMATCH),
        (float("nan"), 1.0, 0, MISMATCH),
        (float("inf"), float("-inf"), 0, MISMATCH),
        (10**400, 10**400 + 1, 0, MISMATCH),
        (object(), object(), 0, MISMATCH),
        (nested(2000), nested(2000), 0, MISMATCH),
        (0.3, 0.1, 0.2, SAME),
        (0.3, 0.1, 0.199, MISMATCH),
        ([{"a": 1}], [{"a": 2}], 1, SAME),
        (1, True, 5, MISMATCH),
        (10**400, 10**400 + 1, 1, SAME),
        (10**400, 1.5, 1e308, MISMATCH),
        (float("nan"), 1, 1e308, MISMATCH),
    ],
)
def test_values_are_the_same_up_to_the_tolerance(one: Any, other: Any, tolerance: float, expected: str) -> None:
    settings = {"tolerance": tolerance} if tolerance else {}
    assert ids(validate(report(run(output={"v": one}), run(output={"v": other})), settings)) == [expected]


@pytest.mark.parametrize("tolerance", [None, True, "1", -1, float("inf"), float("nan"), HUGE, [1]])
def test_invalid_tolerance_is_ignored(tolerance: Any) -> None:
    result = validate(report(run(output={"v": 1}), run(output={"v": 1.5})), {"tolerance": tolerance})
    assert (ids(result), details(result)["tolerance"]) == ([MISMATCH], 0.0)
