"""`outlier_detection`: runs whose duration is far from the others."""

from __future__ import annotations

from typing import Any

import pytest

from agentv_ci.validators.builtin.outlier_detection import validate
from tests.validators.builders import details, found, report, run

MOST = 1.7e308


def runs(*durations: Any) -> dict[str, Any]:
    return report(*(run(duration_ms=each) for each in durations))


def test_outlier_is_a_warning() -> None:
    result = validate(runs(98, 101, 100, 99, 102, 97, 1000))
    assert found(result) == [("duration_outlier", "warning", "runs.6.duration_ms")]
    assert details(result) == {"median": 100.0, "mad": 2 * 1.4826, "k": 5.0, "outliers": [6]}
    assert result["issues"][0]["message"] == "run 6 took 1000 ms; the median is 100 ms, the scaled deviation 2.9652 ms"


@pytest.mark.parametrize(
    ("durations", "settings", "outliers"),
    [
        ((1000, 1001, 1002, 1003, 1004, 1), None, [5]),
        ((98, 99, 100, 101, 102, 110), None, []),
        ((98, 99, 100, 101, 102, 110), {"k": 3}, [5]),
        # The median is 10 and the deviation 1.4826, so 12 is exactly this k away.
        ((8, 9, 10, 11, 12), {"k": 2 / 1.4826}, []),
        ((8, 9, 10, 11, 12), {"k": 1.3}, [0, 4]),
        ((100, 100, 100, 100, 9000), None, []),
        ((), None, []),
    ],
)
def test_outliers_are_more_than_k_deviations_from_the_median(durations: Any, settings: Any, outliers: Any) -> None:
    assert details(validate(runs(*durations), settings))["outliers"] == outliers


@pytest.mark.parametrize(
    ("durations", "median", "mad"),
    [
        ((100, 100, 100, 9000), 100.0, 0.0),
        ((None, ..., "1", True, float("nan"), float("inf"), 10**400, [1], 3.5), 3.5, 0.0),
        ((-MOST, MOST, -MOST, MOST), 0.0, None),
        ((MOST, MOST), MOST, 0.0),
        ((), None, None),
    ],
)
def test_figures_are_those_of_numeric_durations(durations: Any, median: float | None, mad: float | None) -> None:
    found_ = validate(report("no run", *runs(*durations)["runs"]))
    assert details(found_) == {"median": median, "mad": mad, "k": 5.0, "outliers": []}


def test_runs_of_every_status_count() -> None:
    timeout = run(duration_ms=60_000, status="timeout", output=None)
    assert details(validate(report(*runs(1, 2, 3, 4)["runs"], timeout)))["outliers"] == [4]


@pytest.mark.parametrize("k", [None, True, "3", 0, -1, float("nan"), float("inf"), 10**400, [3]])
def test_invalid_k_is_ignored(k: Any) -> None:
    assert details(validate(runs(1), {"k": k}))["k"] == 5.0
