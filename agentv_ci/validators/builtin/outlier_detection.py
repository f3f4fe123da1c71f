"""Find runs whose duration is far from the others.

A run is an outlier when its duration is further from the median than k times the median absolute
deviation (MAD), which outliers hardly affect. The MAD is scaled by 1.4826: of a normal distribution
it is then the standard deviation.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.validators.builtin import BuiltInSettings, MoreThanZero
from agentv_ci.validators.runs import findings, issue, name_of, number_of, numbered_runs

SCALE = 1.4826


class Settings(BuiltInSettings):
    """The distance of outliers from the median."""

    k: MoreThanZero = 5.0


def validate(report: dict[str, Any], context: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return an issue per run of any status whose duration is an outlier.

    None when the deviation is 0.

    Runs whose `duration_ms` is not a number are ignored. Settings: `k`, more than 0 (5.0); ignored
    if invalid.

    In the summary, `median` and the scaled `mad` are milliseconds, null without durations or when
    they do not fit into a float, and `outliers` are the positions of the runs.
    """
    k = Settings.lenient(context).k
    runs = dict(numbered_runs(report))
    durations: dict[int, float] = {}
    for index, run in runs.items():
        if (duration := number_of(run.get("duration_ms"))) is not None:
            durations[index] = duration
    if not durations:
        return findings([], {"median": None, "mad": None, "k": k, "outliers": []})
    median = _median([*durations.values()])
    distances = {index: abs(duration - median) for index, duration in durations.items()}
    mad = SCALE * _median([*distances.values()])
    usual = f"the median is {median:g} ms, the scaled deviation {mad:g} ms"
    outliers: list[JsonValue] = []
    issues: list[JsonObject] = []
    for index, distance in distances.items():
        if mad and distance > k * mad:
            outliers.append(index)
            message = f"{name_of(index, runs[index])} took {durations[index]:g} ms; {usual}"
            place = ("runs", index, "duration_ms")
            issues.append(issue("duration_outlier", "warning", message, *place))
    return findings(issues, {"median": median, "mad": mad, "k": k, "outliers": outliers})


def _median(values: Sequence[float]) -> float:
    """Return the median.

    Unlike for `statistics.median`, the middle values may have a sum that overflows.
    """
    return statistics.mean([statistics.median_low(values), statistics.median_high(values)])
