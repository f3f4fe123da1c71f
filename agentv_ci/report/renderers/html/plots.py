"""The data of the plots and the scales of their axes; templates draw them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import filterfalse

from msgspec import Struct

from agentv_ci.analysis.cases.counts import BINS, bin_of
from agentv_ci.analysis.cases.outcomes import CaseOutcome
from agentv_ci.analysis.cases.spending import PARTS
from agentv_ci.report.renderers.html.payload import Point

MAX_POINTS = 2_000
LOG_FROM = 30
"""A scale is logarithmic if the largest value is at least this many times the smallest."""


LEFT, RIGHT, TOP, BOTTOM = 54, 334, 14, 166
"""The position of the axes in the plot of trials."""


def columns(outcomes: Iterable[CaseOutcome]) -> list[Counter[str]]:
    """Return the number of graded cases by verdict for each column of scores."""
    counts = [Counter[str]() for _ in range(BINS)]
    for outcome in outcomes:
        if outcome.is_graded:
            counts[bin_of(outcome.score)][outcome.verdict] += 1
    return counts


class Scale(Struct, frozen=True):
    """A scale from values to positions."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool

    @classmethod
    def of(cls, values: Sequence[float], start: float, end: float) -> Scale:
        """Return a scale that shows all values; a linear one begins at zero."""
        positive = [value for value in values if value > 0]
        high = max(values, default=0) or 1.0
        is_log = (
            bool(positive) and len(positive) == len(values) and high / min(positive) >= LOG_FROM
        )
        return cls(
            min(positive) / 1.2 if is_log else 0.0,
            high * (1.2 if is_log else 1.05),
            start,
            end,
            is_log,
        )

    def at(self, value: float) -> float:
        """Return the position of a value."""
        if self.is_log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return a few round values."""
        if self.is_log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            every = max(1, (last - first) // 4)
            tens = [10.0**power for power in range(first, last + 1, every)]
            if len(tens) > 1:
                return tens
            return [*tens, self.high / 1.2]
        step = 10.0 ** math.floor(math.log10(self.high))
        step = next(
            distance
            for distance in (step / 5, step / 2, step, step * 2)
            if self.high / distance <= 6
        )
        return [step * number for number in range(math.floor(self.high / step) + 1)]


class Scatter(Struct, frozen=True):
    """Trials by time and cost or, if costs are unknown, by time and score."""

    points: Sequence[Point]
    x: Scale
    y: Scale
    shows_cost: bool
    trials: int
    """How many trials could be drawn."""
    without: int
    """How many could not, because their cost or score is unknown."""

    def height(self, point: Point) -> float:
        """Return the cost in dollars or the score, whichever is shown."""
        if self.shows_cost:
            return (point.cost or 0) / PARTS
        return point.score


def scatter(points: Sequence[Point]) -> Scatter | None:
    """Return the plot of trials; None for fewer than two.

    If there are many, passed trials are thinned evenly over their times.
    """
    priced = [point for point in points if point.cost]
    shows_cost = len(priced) > 1
    plottable = priced if shows_cost else [point for point in points if point.verdict != "error"]
    if len(plottable) < 2:
        return None
    x = Scale.of([point.duration_ms for point in plottable], LEFT, RIGHT)
    y = Scale(0.0, 1.0, BOTTOM, TOP, is_log=False)
    if shows_cost:
        y = Scale.of([(point.cost or 0) / PARTS for point in plottable], BOTTOM, TOP)
    # Trials that did not pass are drawn on top.
    drawn = sorted(thinned(plottable), key=_is_bad)
    return Scatter(drawn, x, y, shows_cost, len(plottable), len(points) - len(plottable))


def thinned(points: Sequence[Point]) -> list[Point]:
    """Return at most MAX_POINTS; trials that did not pass are kept first."""
    if len(points) <= MAX_POINTS:
        return list(points)
    bad, good = list(filter(_is_bad, points)), list(filterfalse(_is_bad, points))
    room = max(0, MAX_POINTS - len(bad))
    return _every(bad, min(len(bad), MAX_POINTS)) + _every(good, room)


def _is_bad(point: Point) -> bool:
    return point.verdict != "pass"


def _every(points: Sequence[Point], number: int) -> list[Point]:
    ordered = sorted(
        points, key=lambda point: (point.duration_ms, point.cost or 0, point.case, point.trial)
    )
    return [ordered[index * len(ordered) // number] for index in range(min(number, len(ordered)))]
