"""The plots of an experiment.

They show the effects as a forest plot, and how these came about over the looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec import Struct

from agentv_ci.contracts.experiment_report import ExperimentReport, Look, MetricEffect
from agentv_ci.report.experiment import (
    STYLES,
    change_text,
    effect_row,
    interval_text,
    look_row,
    preference_texts,
    trials_texts,
)

TONES = {"good": "pass", "bad": "fail"}
"""Of a style; all others are a warning."""
LEFT, RIGHT, TOP, ROW = 190, 560, 16, 28
"""Where the axis of the forest plot begins and ends, and the height of a row."""
LOOKS_LEFT, LOOKS_RIGHT, LOOKS_TOP, LOOKS_BOTTOM = 54, 344, 14, 166
LEAST, MOST = 0.05, 1.0
"""Changes that the ends of an axis stand for: a difference, or a share."""


def tone_of(verdict: str) -> str:
    """Return the tone of a verdict."""
    return TONES.get(STYLES.get(verdict, "warn"), "borderline")


class Axis(Struct, frozen=True):
    """A symmetric axis of changes, from `-reach` at `start` to `reach` at `end`."""

    reach: float
    start: float
    end: float

    def at(self, change: float | None, *, otherwise: float = 0.0) -> float:
        """Return the position of a change.

        One beyond the ends, or None, is at the end (`otherwise`: its sign).
        """
        if change is None:
            value = self.reach * otherwise
        else:
            value = max(-self.reach, min(self.reach, change))
        return round(self.start + (value / self.reach + 1) / 2 * (self.end - self.start), 1)

    def ticks(self) -> Sequence[float]:
        """Return five round changes."""
        return [self.reach * step / 2 for step in (-2, -1, 0, 1, 2)]

    def exceeds(self, change: float | None) -> bool:
        """Whether a change is beyond the ends."""
        return change is None or abs(change) > self.reach


def axis_of(changes: Iterable[float | None], start: float, end: float) -> Axis:
    """Return an axis that shows these changes, as far as they are not extreme."""
    largest = max((abs(change) for change in changes if change is not None), default=LEAST)
    reach = next((share for share in (0.05, 0.1, 0.2, 0.4, 0.6) if share >= largest), MOST)
    return Axis(reach, start, end)


class Bar(Struct, frozen=True):
    """One effect in the forest plot."""

    effect: MetricEffect
    y: float
    tone: str
    text: str


class Forest(Struct, frozen=True):
    """The effects on all metrics, one below the other, on one axis."""

    bars: Sequence[Bar]
    axis: Axis
    bottom: float


def forest(found: ExperimentReport) -> Forest:
    """Return the forest plot of an experiment."""
    shown = [effect for effect in found.effects if effect.estimate is not None]
    changes: list[float | None] = []
    for effect in shown:
        changes += (effect.estimate, effect.low, effect.high)
    axis = axis_of(changes, LEFT, RIGHT)
    bars = [
        Bar(effect, TOP + ROW * (row + 0.5), tone_of(effect.verdict), _text(effect))
        for row, effect in enumerate(shown)
    ]
    return Forest(bars, axis, TOP + ROW * len(bars))


def _text(effect: MetricEffect) -> str:
    metric = effect.metric
    return (
        f"{change_text(metric, effect.estimate)} ({interval_text(metric, effect.low, effect.high)})"
    )


class LookPlot(Struct, frozen=True):
    """The change of the primary metric of one arm over the looks."""

    arm: str
    looks: Sequence[Look]
    axis: Axis
    line: str
    """The path of the estimates."""
    band: str
    """The path around the intervals."""
    places: Sequence[float]
    """Of the looks, from left to right."""


def look_plots(found: ExperimentReport) -> list[LookPlot]:
    """Return a plot for each arm that was looked at more than once."""
    by_arm: dict[str, list[Look]] = {}
    for look in found.looks:
        by_arm.setdefault(look.arm, []).append(look)
    return [_look_plot(arm, looks) for arm, looks in by_arm.items() if len(looks) > 1]


class ShownExperiment(Struct, frozen=True):
    """What the page shows of an experiment besides its report."""

    facts: Sequence[str]
    forest: Forest
    rows: Sequence[tuple[MetricEffect, Sequence[str]]]
    """Each effect with the cells of its row."""
    plots: Sequence[LookPlot]
    looks: Sequence[Sequence[str]]
    """The cells of the row of each look."""


def shown_experiment(found: ExperimentReport) -> ShownExperiment:
    """Return what the page shows of an experiment."""
    return ShownExperiment(
        facts=[*preference_texts(found.effects), *trials_texts(found)],
        forest=forest(found),
        rows=[(effect, effect_row(effect)) for effect in found.effects],
        plots=look_plots(found),
        looks=[look_row(look, found) for look in found.looks],
    )


def _look_plot(arm: str, looks: Sequence[Look]) -> LookPlot:
    ends = chain.from_iterable((look.low, look.high) for look in looks)
    axis = axis_of(ends, LOOKS_BOTTOM, LOOKS_TOP)
    last = max(*(look.trials for look in looks), 1)
    places: list[float] = []
    line: list[tuple[float, float]] = []
    upper: list[tuple[float, float]] = []
    lower: list[tuple[float, float]] = []
    for look in looks:
        place = round(LOOKS_LEFT + look.trials / last * (LOOKS_RIGHT - LOOKS_LEFT), 1)
        places.append(place)
        line.append((place, axis.at(look.estimate)))
        upper.append((place, axis.at(look.high, otherwise=1)))
        lower.append((place, axis.at(look.low, otherwise=-1)))
    band = f"{_path([*upper, *reversed(lower)])}z"
    return LookPlot(arm, looks, axis, _path(line), band, places)


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x} {y}" for x, y in points)
