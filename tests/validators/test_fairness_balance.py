"""`fairness_balance`: the mean of a metric is similar in all groups of runs."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.validators.builtin.fairness_balance import validate
from tests.validators.builders import HUGE, details, found, ids, report, run

SCORE = {"metric_path": "metrics.score"}
WITHIN, IMBALANCE = "fairness_within_threshold", "fairness_imbalance"


def scored(*pairs: tuple[Any, Any]) -> dict[str, Any]:
    return report(*(run(runner_key=key, metrics={"score": score}) for key, score in pairs))


def test_difference_of_means_above_the_threshold_is_an_error() -> None:
    result = validate(scored(("a", 0.95), ("a", 0.96), ("b", 0.7), ("b", 0.71)), SCORE)
    assert found(result) == [(IMBALANCE, "error", None)]
    assert result["issues"][0]["message"] == 'the means of "a" and "b" differ by 0.25; the threshold is 0.1'
    assert details(result) == {
        "group_path": "runner_key",
        "metric_path": "metrics.score",
        "threshold": 0.1,
        "group_sizes": {"a": 2, "b": 2},
        "group_means": {"a": 0.955, "b": 0.705},
        "difference": 0.25,
    }


@pytest.mark.parametrize(
    ("one", "other", "threshold"), [(0.8, 0.7, 0.1), (0.4, 0.3, 0.1), (1.1, 1.0, 0.1), (0.95, 0.7, 0.5)]
)
def test_difference_up_to_the_threshold_is_fair(one: float, other: float, threshold: float) -> None:
    result = validate(scored(("a", one), ("b", other)), {**SCORE, "threshold": threshold})
    assert found(result) == [(WITHIN, "info", None)]


@pytest.mark.parametrize("path", [None, "", 5, ["metrics"]])
def test_metric_path_is_required(path: Any) -> None:
    result = validate(scored(("a", 1)), {"metric_path": path})
    assert found(result) == [("missing_metric_path", "error", None)]
    figures = details(result)
    assert (figures["metric_path"], figures["group_sizes"], figures["difference"]) == (None, {}, None)


@pytest.mark.parametrize("metric", ["1", None, True, float("nan"), float("inf"), HUGE, [1]])
def test_run_whose_metric_is_not_a_number_is_ignored(metric: Any) -> None:
    ignored = ("non_numeric_metric", "info", "runs.1.metrics.score")
    result = validate(scored(("a", 1), ("a", metric)), SCORE)
    assert (found(result), details(result)["group_sizes"]) == ([ignored, (WITHIN, "info", None)], {"a": 1})


def test_message_names_the_metric_that_is_ignored() -> None:
    result = validate(report(run(metrics={}), run(metrics={"score": "x"})), SCORE)
    assert (ids(result)[2:], details(result)["difference"]) == (["no_groups_evaluable"], None)
    assert [each["message"] for each in result["issues"][:2]] == [
        "run 0 is ignored: 'metrics.score' is missing",
        "run 1 is ignored: 'metrics.score' must be a number, not \"x\"",
    ]


def test_only_successful_runs_count() -> None:
    failed = run(runner_key="b", status="failed", metrics={"score": 0}, output=None)
    assert details(validate(report(run(), failed), SCORE))["group_sizes"] == {"model": 1}


def test_groups_that_are_too_small_do_not_count() -> None:
    result = validate(scored(("a", 1), ("a", 1), ("b", 0)), {**SCORE, "min_group_size": 2})
    assert ids(result) == [WITHIN]
    figures = [details(result)[name] for name in ("group_sizes", "group_means", "difference")]
    assert figures == [{"a": 2, "b": 1}, {"a": 1.0}, 0.0]
    none = validate(scored(("a", 1), ("b", 0)), {**SCORE, "min_group_size": 10**400})
    assert found(none) == [("no_groups_evaluable", "info", None)]


@pytest.mark.parametrize(
    ("group", "sizes"),
    [
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
def test_invalid_settings_are_ignored(value: Any) -> None:
    settings = {**SCORE, "group": [value], "threshold": value, "min_group_size": value}
    result = validate(scored(("a", 1), ("b", 1)), settings)
    assert ids(result) == [WITHIN]
    assert (details(result)["group_path"], details(result)["threshold"]) == ("runner_key", 0.1)


def test_figures_that_do_not_fit_into_a_float_are_null() -> None:
    result = validate(scored(("a", 1.7e308), ("a", 1.7e308), ("b", -1.7e308)), {**SCORE, "threshold": 10**400})
    assert ids(result) == [IMBALANCE]
    figures = details(result)
    assert (figures["group_means"], figures["threshold"]) == ({"a": 1.7e308, "b": -1.7e308}, 0.1)
    assert figures["difference"] is None
