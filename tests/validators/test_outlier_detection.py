"""Runs that took much more or much less time than the others are found."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.validators.builtin.outlier_detection import validate
from tests.validators.builders import details, found, report, run


def runs(*durations: Any) -> dict[str, Any]:
    return report(*(run(duration_ms=each) for each in durations))


def test_outlier_is_a_warning() -> None:
    result = validate(runs(98, 101, 100, 99, 102, 97, 1000))
    assert found(result) == [("duration_outlier", "warning", "runs.6.duration_ms")]
    assert details(result) == {"median": 100.0, "mad": 2 * 1.4826, "k": 5.0, "outliers": [6]}
    assert result["issues"][0]["message"] == "run 6 took 1000 ms; the median is 100 ms, the scaled deviation 2.9652 ms"


def test_outlier_may_be_faster_than_the_others() -> None:
    assert details(validate(runs(1000, 1001, 1002, 1003, 1004, 1)))["outliers"] == [5]


def test_k_says_how_far_is_too_far() -> None:
    durations = runs(98, 99, 100, 101, 102, 110)
    assert details(validate(durations))["outliers"] == []
    assert details(validate(durations, {"k": 3}))["outliers"] == [5]


def test_distance_of_exactly_k_deviations_is_no_outlier() -> None:
    """The median is 10, the deviation 1.4826, and 2 / 1.4826 is the k at which 12 is no longer one."""
    durations = runs(8, 9, 10, 11, 12)
    assert details(validate(durations, {"k": 2 / 1.4826}))["outliers"] == []
    assert details(validate(durations, {"k": 1.3}))["outliers"] == [0, 4]


def test_nothing_is_an_outlier_when_most_durations_are_the_same() -> None:
    result = validate(runs(100, 100, 100, 100, 9000))
    assert result["issues"] == []
    assert details(result) == {"median": 100.0, "mad": 0.0, "k": 5.0, "outliers": []}


def test_duration_that_is_no_number_does_not_count() -> None:
    wrong = (None, ..., "1", True, float("nan"), float("inf"), 10**400, [1])
    result = validate(report(*(run(duration_ms=each) for each in wrong), "no run", run(duration_ms=3.5)))
    assert details(result) == {"median": 3.5, "mad": 0.0, "k": 5.0, "outliers": []}


def test_every_status_counts() -> None:
    timeout = run(duration_ms=60_000, status="timeout", output=None)
    assert details(validate(report(*runs(1, 2, 3, 4)["runs"], timeout)))["outliers"] == [4]


def test_without_durations_there_are_no_figures() -> None:
    assert details(validate(report())) == {"median": None, "mad": None, "k": 5.0, "outliers": []}


def test_figures_that_no_float_can_hold_are_null() -> None:
    most = 1.7e308
    result = validate(runs(-most, most, -most, most))
    assert details(result) == {"median": 0.0, "mad": None, "k": 5.0, "outliers": []}
    assert details(validate(runs(most, most)))["median"] == most


@pytest.mark.parametrize("k", [None, True, "3", 0, -1, float("nan"), float("inf"), 10**400, [3]])
def test_k_of_a_wrong_form_is_the_default(k: Any) -> None:
    assert details(validate(runs(1), {"k": k}))["k"] == 5.0
