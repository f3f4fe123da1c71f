"""A metric is about the same in every group of runs."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.validators.builtin.fairness_balance import validate
from tests.validators.builders import HUGE, details, found, ids, report, run

SCORE = {"metric_path": "metrics.score"}


def scored(*pairs: tuple[Any, Any]) -> dict[str, Any]:
    return report(*(run(runner_key=key, metrics={"score": score}) for key, score in pairs))


def test_difference_of_means_beyond_the_threshold_is_an_error() -> None:
    result = validate(scored(("a", 0.95), ("a", 0.96), ("b", 0.7), ("b", 0.71)), SCORE)
    assert found(result) == [("fairness_imbalance", "error", None)]
    assert result["issues"][0]["message"] == 'the means of "a" and "b" differ by 0.25; the threshold is 0.1'
    assert details(result) == {
        "group_path": "runner_key",
        "metric_path": "metrics.score",
        "threshold": 0.1,
        "group_sizes": {"a": 2, "b": 2},
        "group_means": {"a": 0.955, "b": 0.705},
        "difference": 0.25,
    }


def test_difference_within_the_threshold_is_told() -> None:
    result = validate(scored(("a", 0.95), ("b", 0.7)), {**SCORE, "threshold": 0.5})
    assert found(result) == [("fairness_within_threshold", "info", None)]


@pytest.mark.parametrize(("one", "other"), [(0.8, 0.7), (0.4, 0.3), (1.1, 1.0)])
def test_difference_of_the_threshold_is_within_it_whatever_binary_fractions_say(one: float, other: float) -> None:
    assert ids(validate(scored(("a", one), ("b", other)), SCORE)) == ["fairness_within_threshold"]


@pytest.mark.parametrize("path", [None, "", 5, ["metrics"]])
def test_metric_path_is_required(path: Any) -> None:
    result = validate(scored(("a", 1)), {"metric_path": path})
    assert found(result) == [("missing_metric_path", "error", None)]
    assert details(result) == {
        "group_path": "runner_key",
        "metric_path": None,
        "threshold": 0.1,
        "group_sizes": {},
        "group_means": {},
        "difference": None,
    }


@pytest.mark.parametrize("metric", ["1", None, True, float("nan"), float("inf"), HUGE, [1]])
def test_metric_that_is_no_number_is_told_and_does_not_count(metric: Any) -> None:
    result = validate(scored(("a", 1), ("a", metric)), SCORE)
    assert found(result) == [
        ("non_numeric_metric", "info", "runs.1.metrics.score"),
        ("fairness_within_threshold", "info", None),
    ]
    assert details(result)["group_sizes"] == {"a": 1}


def test_metric_that_is_missing_is_told() -> None:
    result = validate(report(run(metrics={})), SCORE)
    assert ids(result) == ["non_numeric_metric", "no_groups_evaluable"]
    assert result["issues"][0]["message"] == "run 0 is ignored: 'metrics.score' is missing"
    assert details(result)["difference"] is None


def test_only_success_counts() -> None:
    failed = run(runner_key="b", status="failed", metrics={"score": 0}, output=None)
    assert details(validate(report(run(), failed), SCORE))["group_sizes"] == {"model": 1}


def test_group_that_is_too_small_does_not_count() -> None:
    result = validate(scored(("a", 1), ("a", 1), ("b", 0)), {**SCORE, "min_group_size": 2})
    assert ids(result) == ["fairness_within_threshold"]
    assert details(result)["group_sizes"] == {"a": 2, "b": 1}
    assert details(result)["group_means"] == {"a": 1.0}
    assert details(result)["difference"] == 0.0


def test_groups_that_are_all_too_small_cannot_be_compared() -> None:
    result = validate(scored(("a", 1), ("b", 0)), {**SCORE, "min_group_size": 10**400})
    assert found(result) == [("no_groups_evaluable", "info", None)]


@pytest.mark.parametrize(
    ("group", "sizes"),
    [
        ("runner_key", {"model": 4}),
        ("seed", {"7": 2, "8": 2}),
        ("output.lang", {"en": 2, "de": 1, "unknown": 1}),
        ("output.flags.0", {"true": 1, "1": 1, "1.5": 1, "unknown": 1}),
        ("output.flags", {"unknown": 4}),
    ],
)
def test_group_is_a_path_into_the_run(group: str, sizes: dict[str, int]) -> None:
    outputs: list[dict[str, Any]] = [
        {"lang": "en", "flags": [True]},
        {"lang": "de", "flags": [1.0]},
        {"lang": "en", "flags": [1.5]},
        {"lang": None},
    ]
    runs = [run(seed=7 + index % 2, output=output) for index, output in enumerate(outputs)]
    assert details(validate(report(*runs), {**SCORE, "group": group}))["group_sizes"] == sizes


@pytest.mark.parametrize("value", [None, "x", True, -1, float("nan"), [2]])
def test_settings_of_a_wrong_form_are_the_defaults(value: Any) -> None:
    settings = {**SCORE, "group": [value], "threshold": value, "min_group_size": value}
    result = validate(scored(("a", 1), ("b", 1)), settings)
    assert ids(result) == ["fairness_within_threshold"]
    assert details(validate(report(), {**SCORE, "threshold": 10**400}))["threshold"] == 0.1
    assert (details(result)["group_path"], details(result)["threshold"]) == ("runner_key", 0.1)


def test_figures_that_no_float_can_hold_are_null() -> None:
    result = validate(scored(("a", 1.7e308), ("a", 1.7e308), ("b", -1.7e308)), SCORE)
    assert ids(result) == ["fairness_imbalance"]
    assert details(result)["group_means"] == {"a": 1.7e308, "b": -1.7e308}
    assert details(result)["difference"] is None
