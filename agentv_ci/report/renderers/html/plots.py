"""Where the marks of the plots stand: plain geometry, drawn by the templates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.analysis.statistics import BINS, bin_of
from agentv_ci.contracts.base import Verdict
from agentv_ci.report.renderers.html.numbers import duration, money, score
from agentv_ci.report.renderers.html.payload import Point

MAX_POINTS = 2_000
LOG_FROM = 30
"""A scale is logarithmic when the largest value is so many times the smallest."""
LEAST_USD, MOST_MS = 1e-9, 10**15
"""What is beyond is drawn there: no figure for people, but rows come from anywhere."""

STACKED: tuple[Verdict, ...] = ("pass", "borderline", "fail")
"""From the bottom up."""
VERDICTS: tuple[Verdict, ...] = ("pass", "borderline", "fail", "error")


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a plot has its axes."""

    left: int
    right: int
    width: int = 360
    height: int = 200
    top: int = 14
    bottom: int = 166


SCORES, TRIALS = Frame(left=10, right=350), Frame(left=54, right=334)


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle of one verdict."""

    verdict: Verdict
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place on an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A trial, as a shape of its verdict around a place."""

    verdict: Verdict
    path: str
    case: int
    trial: int
    says: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """Cases by score."""

    bars: tuple[Bar, ...]
    labels: tuple[tuple[float, float, str], ...]
    """How many cases a column has, and where that is written."""
    x: tuple[Tick, ...]
    verdicts: tuple[Verdict, ...]
    says: str
    frame: Frame = SCORES


@dataclass(frozen=True, slots=True)
class Scatter:
    """Trials by time, and by cost or score."""

    marks: tuple[Mark, ...]
    x: tuple[Tick, ...]
    y: tuple[Tick, ...]
    verdicts: tuple[Verdict, ...]
    measure: Literal["cost", "score"]
    trials: int
    """How many could be drawn."""
    without: int
    """How many could not, because they have no cost, or no score."""
    is_log: bool
    """Whether a scale is logarithmic."""
    frame: Frame = TRIALS


def histogram(outcomes: Iterable[CaseOutcome]) -> Histogram | None:
    """Return the columns of graded cases; None when there is none."""
    bins: list[dict[Verdict, int]] = [dict.fromkeys(STACKED, 0) for _ in range(BINS)]
    for outcome in outcomes:
        if outcome.verdict != "error":
            bins[bin_of(outcome.score)][outcome.verdict] += 1
    totals = [sum(each.values()) for each in bins]
    if not any(totals):
        return None
    step, unit = (SCORES.right - SCORES.left) / BINS, (SCORES.bottom - SCORES.top) / max(totals)
    return Histogram(
        bars=tuple(
            bar for index, each in enumerate(bins) for bar in _column(each, SCORES.left + index * step, step, unit)
        ),
        labels=tuple(
            (_at(SCORES.left + (index + 0.5) * step), _at(SCORES.bottom - total * unit - 4), f"{total:,}")
            for index, total in enumerate(totals)
            if total
        ),
        x=tuple(Tick(_at(SCORES.left + index * step), f"{index / BINS:g}") for index in range(BINS + 1)),
        verdicts=tuple(verdict for verdict in reversed(STACKED) if any(each[verdict] for each in bins)),
        says="cases by score: "
        + "; ".join(f"{index / BINS:g} to {(index + 1) / BINS:g}: {total}" for index, total in enumerate(totals)),
    )


def _column(numbers: Mapping[Verdict, int], x: float, width: float, unit: float) -> Iterator[Bar]:
    floor = float(SCORES.bottom)
    for verdict in STACKED:
        height = numbers[verdict] * unit
        floor -= height
        if height:
            yield Bar(verdict, _at(x + 3), _at(floor), _at(width - 6), _at(height))


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool

    @classmethod
    def of(cls, values: Sequence[float], start: float, end: float) -> Scale:
        """Return the scale that shows all values; zero is part of a linear one."""
        positive = [value for value in values if value > 0]
        high = max(values, default=0) or 1.0
        is_log = bool(positive) and len(positive) == len(values) and high / min(positive) >= LOG_FROM
        return cls(min(positive) / 1.2 if is_log else 0.0, high * (1.2 if is_log else 1.05), start, end, is_log)

    def at(self, value: float) -> float:
        """Return the place of a value."""
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
            return tens if len(tens) > 1 else [*tens, self.high / 1.2]
        step = 10.0 ** math.floor(math.log10(self.high))
        step = next(each for each in (step / 5, step / 2, step, step * 2) if self.high / each <= 6)
        return [step * number for number in range(math.floor(self.high / step) + 1)]


def scatter(points: Sequence[Point], outcomes: Sequence[CaseOutcome]) -> Scatter | None:
    """Return the marks of trials: time against cost where it is known, else against score; None for fewer than two.

    Of many trials those that passed are thinned, evenly over their times.
    """
    priced = [point for point in points if point.cost_usd]
    measure: Literal["cost", "score"] = "cost" if len(priced) > 1 else "score"
    plottable = priced if measure == "cost" else [point for point in points if point.verdict != "error"]
    if len(plottable) < 2:
        return None
    x = Scale.of([_time(point) for point in plottable], TRIALS.left, TRIALS.right)
    y = Scale(0.0, 1.0, TRIALS.bottom, TRIALS.top, is_log=False)
    if measure == "cost":
        y = Scale.of([_cost(point) for point in plottable], TRIALS.bottom, TRIALS.top)
    drawn = thinned(plottable)
    marks = (_mark(point, outcomes[point.case].case.id, x, y, measure) for point in drawn)
    return Scatter(
        # What passed lies below what did not.
        marks=tuple(sorted(marks, key=lambda mark: mark.verdict != "pass")),
        x=tuple(Tick(_at(x.at(value)), duration(value)) for value in x.ticks()),
        y=tuple(Tick(_at(y.at(each)), money(each) if measure == "cost" else f"{each:g}") for each in y.ticks()),
        verdicts=tuple(verdict for verdict in VERDICTS if any(point.verdict == verdict for point in drawn)),
        measure=measure,
        trials=len(plottable),
        without=len(points) - len(plottable),
        is_log=x.is_log or y.is_log,
    )


def _time(point: Point) -> int:
    return min(point.duration_ms, MOST_MS)


def _cost(point: Point) -> float:
    return max(point.cost_usd or 0.0, LEAST_USD)


def _mark(point: Point, case: str, x: Scale, y: Scale, measure: Literal["cost", "score"]) -> Mark:
    value = _cost(point) if measure == "cost" else point.score
    measured = money(value) if measure == "cost" else f"score {score(value)}"
    says = f"{case}: {point.verdict}, {duration(_time(point))}, {measured}"
    path = _shape(point.verdict, x.at(_time(point)), y.at(value))
    return Mark(point.verdict, path, point.case, point.trial, says)


def thinned(points: Sequence[Point]) -> list[Point]:
    """Return at most MAX_POINTS, what did not pass first."""
    if len(points) <= MAX_POINTS:
        return list(points)
    bad = [point for point in points if point.verdict != "pass"]
    good = [point for point in points if point.verdict == "pass"]
    room = max(0, MAX_POINTS - len(bad))
    return _every(bad, min(len(bad), MAX_POINTS)) + _every(good, room)


def _every(points: Sequence[Point], number: int) -> list[Point]:
    ordered = sorted(points, key=lambda point: (point.duration_ms, point.cost_usd or 0.0, point.case, point.trial))
    return [ordered[index * len(ordered) // number] for index in range(min(number, len(ordered)))]


def _shape(verdict: Verdict, x: float, y: float) -> str:
    """Return a circle, a triangle, a square on its corner or a cross."""
    match verdict:
        case "pass":
            return f"M{_at(x - 2.5)} {_at(y)}a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0"
        case "borderline":
            return f"M{_at(x)} {_at(y - 4)}l4 7h-8z"
        case "fail":
            return f"M{_at(x)} {_at(y - 4.5)}l4.5 4.5l-4.5 4.5l-4.5 -4.5z"
        case _:
            return f"M{_at(x - 3.5)} {_at(y - 3.5)}l7 7m0 -7l-7 7"


def _at(value: float) -> float:
    return round(value, 1)
