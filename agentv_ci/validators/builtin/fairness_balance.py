"""Check that the mean of a metric is similar in all groups of runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentv_ci.contracts.base import JsonObject, Name, NonNegative
from agentv_ci.contracts.results import PRECISION
from agentv_ci.validators.builtin import AtLeastZero, BuiltInSettings
from agentv_ci.validators.runs import (
    Run,
    excerpt,
    findings,
    found_at,
    issue,
    label_of,
    name_of,
    number_of,
    numbered_runs,
    successful,
)


class Settings(BuiltInSettings):
    """What is compared, and the largest fair difference."""

    metric_path: Name
    group: Name = "runner_key"
    threshold: AtLeastZero = 0.1
    min_group_size: NonNegative = 1


def validate(report: dict[str, Any], context: dict[str, Any] | None = None) -> dict[str, Any]:
    """Compare the largest and the smallest mean of a metric over groups of successful runs.

    Settings: `metric_path`, a dot path into a run, required; `group`, a dot path ("runner_key") to
    a string, number or boolean, otherwise the group is "unknown"; `threshold`, the largest fair
    difference, at least 0 (0.1); `min_group_size`, the fewest runs with the metric for a group to
    count, at least 1 (1). Settings of an invalid form are ignored.

    In the summary, `group_sizes` has the number of runs with the metric of all groups, and
    `group_means` the means of groups that count; `difference` is null without such groups, or when
    it does not fit into a float.
    """
    settings = Settings.lenient(context)
    metric_path = settings.metric_path if "metric_path" in settings.model_fields_set else None
    runs = successful(numbered_runs(report))
    groups = _groups(runs, settings.group, metric_path) if metric_path is not None else {}
    least = max(settings.min_group_size, 1)
    means: dict[str, float] = {}
    for name, metrics in groups.items():
        if len(metrics) >= least:
            means[name] = round(statistics.mean(metrics), PRECISION)
    difference = round(max(means.values()) - min(means.values()), PRECISION) if means else None
    if metric_path is None:
        message = "setting 'metric_path' is missing: nothing is compared"
        issues = [issue("missing_metric_path", "error", message)]
    else:
        issues = [
            *_without_metric(runs, metric_path),
            _judged(means, difference, settings.threshold),
        ]
    return findings(
        issues,
        {
            "group_path": settings.group,
            "metric_path": metric_path,
            "threshold": settings.threshold,
            "group_sizes": {name: len(metrics) for name, metrics in groups.items()},
            "group_means": {**means},
            "difference": difference,
        },
    )


def _groups(
    runs: Sequence[tuple[int, Run]], group_path: str, metric_path: str
) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = {}
    for _, run in runs:
        metric = _metric(run, metric_path)
        if metric is not None:
            name = label_of(*(found_at(run, group_path) or (None,)))
            groups.setdefault(name, []).append(metric)
    return groups


def _metric(run: Run, metric_path: str) -> float | None:
    return number_of(*(found_at(run, metric_path) or (None,)))


def _without_metric(runs: Sequence[tuple[int, Run]], metric_path: str) -> Iterator[JsonObject]:
    for index, run in runs:
        if _metric(run, metric_path) is None:
            found = found_at(run, metric_path)
            has = f"must be a number, not {excerpt(found[0])}" if found else "is missing"
            message = f"{name_of(index, run)} is ignored: '{metric_path}' {has}"
            yield issue(
                "non_numeric_metric", "info", message, "runs", index, *metric_path.split(".")
            )


def _judged(means: Mapping[str, float], difference: float | None, threshold: float) -> JsonObject:
    if difference is None:
        return issue("no_groups_evaluable", "info", "no group has enough runs with the metric")
    least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    figures = f"the means of {excerpt(most)} and {excerpt(least)} differ by {difference}"
    if difference > round(threshold, PRECISION):
        return issue("fairness_imbalance", "error", f"{figures}; the threshold is {threshold}")
    return issue(
        "fairness_within_threshold", "info", f"{figures}, within the threshold of {threshold}"
    )
