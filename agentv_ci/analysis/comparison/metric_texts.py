"""Changes of metrics as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv_ci.base.text import SMALL_USD, counted, dollars, listed
from agentv_ci.contracts.results import PRECISION

if TYPE_CHECKING:
    from agentv_ci.contracts.comparison import MetricChange, MetricName


def metric_text(change: MetricChange) -> str:
    """Return a metric with its values on both sides.

    Also how sure the change is, and what would decide it.
    """
    separator = ": " if change.verdict == "not compared" else " "
    return f"{metric_name(change)}{separator}{values_text(change)}"


def values_text(change: MetricChange) -> str:
    """Return the values on both sides, how sure the change is, and what would decide it."""
    if change.verdict == "not compared":
        return change.reason or ""
    if change.metric == "pass rate":
        return _pass_rate(change)
    details = (_before_and_now(change), _range(change), _allowed(change), change.reason)
    return "; ".join(filter(None, details))


def metric_name(change: MetricChange) -> str:
    """Return the name of a metric, with the target and the suites that it is about."""
    of_target = f" of target {change.target}" if change.target else ""
    in_suites = f" in {listed(change.suites)}" if change.suites else ""
    return f"{change.metric.replace('_', ' ')}{of_target}{in_suites}"


def verdict_text(change: MetricChange) -> str:
    """Return the verdict on a metric.

    One without a limit is not undecided, it just shows no change.
    """
    if change.verdict == "undecided" and change.allowed is None:
        return "no change shown"
    return change.verdict


def _pass_rate(change: MetricChange) -> str:
    values = f"{_before_and_now(change)} ({_trials(change)})"
    if change.verdict in ("worse", "better"):
        what = "drop" if change.verdict == "worse" else "rise"
        share = _percent(change.p_value)
        return f"{values}; chance alone explains such a {what} in {share} of comparisons"
    if change.reason:
        return f"{values}; {change.reason}"
    if change.base == 0:
        return f"{values}; none passed before, so none can be lost"
    largest = f"{-100 * change.low:.0f}" if change.low is not None else "100"
    return f"{values}; the real change may be a drop of up to {largest} points"


def _trials(change: MetricChange) -> str:
    """Return how many trials passed before and pass now.

    Cases, where they weigh otherwise than their trials.
    """
    before, of_before = change.base_passed or 0, change.base_trials or 1
    now, of_now = change.head_passed or 0, change.head_trials or 1
    rates = round(before / of_before, PRECISION), round(now / of_now, PRECISION)
    if rates != (change.base, change.head):
        return f"mean of {counted(change.cases, 'case')}"
    if of_before == of_now:
        return f"{before} → {now} of {counted(of_now, 'trial')}"
    return f"{before} of {of_before} → {now} of {counted(of_now, 'trial')}"


def _percent(share: float | None) -> str:
    if share is None or share < 0.001:
        return "less than 0.1%"
    return f"{100 * share:.1f}%"


def _before_and_now(change: MetricChange) -> str:
    before, now = _value(change.metric, change.base), _value(change.metric, change.head)
    if before == now:
        return f"{before} before and now"
    return f"{before} → {now}"


def _value(metric: MetricName, value: float | None) -> str:
    if value is None:
        return "?"
    match metric:
        case "pass rate":
            return f"{100 * value:.1f}%".replace(".0%", "%")
        case "mean score":
            return f"{value:.3f}"
        case "cost":
            if value < SMALL_USD:
                return dollars(value)
            return f"${value:.4g}"
        case "tokens":
            return f"{value:,.0f}"
        case _:
            return f"{value:.3g} s"


def _range(change: MetricChange) -> str:
    """Return the range of the change and its level.

    Of what has a limit, also the change of the total.
    """
    total = ""
    if change.allowed is not None and change.base and change.head is not None:
        total = f"in total {change.head / change.base - 1:+.1%}"
    if change.low is None or change.high is None or change.confidence is None:
        return total
    level = f"{100 * change.confidence:.3g}%"
    if change.metric == "mean score":
        return f"range of the change {change.low:+.3f} to {change.high:+.3f} ({level})"
    # Adding 0 makes -0.0 positive.
    low, high = round(change.low, 3) + 0.0, round(change.high, 3) + 0.0
    return f"{total}, range per case {low:+.1%} to {high:+.1%} ({level})"


def _allowed(change: MetricChange) -> str:
    if change.allowed is None:
        return ""
    return f"at most {100 * change.allowed:g}% allowed"
