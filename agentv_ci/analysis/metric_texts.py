"""Changes of metrics as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv_ci.text import listed

if TYPE_CHECKING:
    from agentv_ci.contracts.comparison import MetricChange, MetricName


def metric_text(change: MetricChange) -> str:
    """Return a metric with its values on both sides, its change, and what is missing for a verdict."""
    separator = ": " if change.verdict == "not compared" else " "
    return f"{metric_name(change)}{separator}{values_text(change)}"


def values_text(change: MetricChange) -> str:
    """Return the values on both sides, the change, and what is missing for a verdict."""
    if change.verdict == "not compared":
        return change.reason or ""
    values = f"{_value(change.metric, change.base)} → {_value(change.metric, change.head)}"
    missing = f"; {change.reason}" if change.reason else ""
    return f"{values}{_interval(change)}{_allowed(change)}{missing}"


def metric_name(change: MetricChange) -> str:
    """Return the name of a metric, with the target and the suites that it is about."""
    of_target = f" of target {change.target}" if change.target else ""
    in_suites = f" in {listed(change.suites)}" if change.suites else ""
    return f"{change.metric.replace('_', ' ')}{of_target}{in_suites}"


def _value(metric: MetricName, value: float | None) -> str:
    if value is None:
        return "?"
    match metric:
        case "pass rate":
            return f"{value:.1%}"
        case "mean score":
            return f"{value:.3f}"
        case "cost":
            return f"${value:.4g}"
        case "tokens":
            return f"{value:,.0f}"
        case _:
            return f"{value:.3g} s"


def _interval(change: MetricChange) -> str:
    """Return the interval, without one the estimate; a pass rate that its trials decide has neither."""
    if change.low is None or change.high is None:
        return f" ({change.change:+.1%})" if change.allowed is not None and change.change is not None else ""
    match change.metric:
        case "pass rate":
            return f" ({100 * change.low:+.1f} to {100 * change.high:+.1f} points)"
        case "mean score":
            return f" ({change.low:+.3f} to {change.high:+.3f})"
        case _:
            return f", {change.change:+.1%} ({change.low:+.1%} to {change.high:+.1%})"


def _allowed(change: MetricChange) -> str:
    return f", at most {100 * change.allowed:g}% allowed" if change.allowed is not None else ""
