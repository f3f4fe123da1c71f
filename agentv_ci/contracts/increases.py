"""Limits of what a run may cost and take, compared with an earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import Field

IncreasingMetric = Literal["cost", "tokens", "mean_latency", "p95_latency"]
METRICS: tuple[IncreasingMetric, ...] = get_args(IncreasingMetric)

WhenUndecided = Literal["pass", "fail"]
"""What a comparison counts as if too few trials leave open whether the newer run is worse."""

PERCENTAGE = r"^[0-9]{1,6}(\.[0-9]+)?%$"
Percentage = Annotated[str, Field(pattern=PERCENTAGE)]
"""Such as `10%`. A number would not say whether 1 is 1% or 100%."""

Increases = dict[IncreasingMetric, Annotated[float, Field(ge=0)]]
"""Metric → the largest allowed increase, as a share: 0.1 is 10%."""


def increases_of(percentages: Mapping[str, str | None]) -> Increases:
    """Return the limits among the settings of a gate, such as `max_cost_increase: 10%`."""
    given = {metric: percentages.get(setting_of(metric)) for metric in METRICS}
    return {metric: share_of(text) for metric, text in given.items() if text is not None}


def share_of(percentage: str) -> float:
    """Return a percentage as a share: 0.1 of `10%`."""
    return float(percentage.removesuffix("%")) / 100


def setting_of(metric: IncreasingMetric) -> str:
    """Return the name of the setting that limits a metric."""
    return f"max_{metric}_increase"
