"""The plots: scales, columns, and which trials are drawn."""

from __future__ import annotations

import pytest

from agentv_ci.report.renderers.html.payload import Point
from agentv_ci.report.renderers.html.plots import BOTTOM, LEFT, MAX_POINTS, RIGHT, TOP, Scale, columns, scatter, thinned
from tests.support.runs import row, whole


def test_cases_without_a_verdict_are_in_no_column() -> None:
    assert not any(columns(whole([row("error")])[1]))


@pytest.mark.parametrize(("spread", "is_log"), [(2, False), (29, False), (30, True), (1_000_000, True)])
def test_marks_are_inside_the_plot(spread: float, is_log: bool) -> None:
    values = [1.0, 1.5, float(spread)]
    scale = Scale.of(values, LEFT, RIGHT)
    assert scale.is_log == is_log
    assert all(LEFT <= scale.at(value) <= RIGHT for value in [*values, *scale.ticks()])
    assert 2 <= len(scale.ticks()) <= 8
    upwards = Scale.of(values, BOTTOM, TOP)
    assert upwards.at(values[0]) > upwards.at(values[-1])


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([1, 1.5, 2], [0, 0.5, 1, 1.5, 2]),
        ([1, 4], [0, 1, 2, 3, 4]),
        ([6], [0, 2, 4, 6]),
        ([0], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([2, 70], [10, 70]),
        ([3, 100], [10, 100]),
        ([1, 10**9], [1, 100, 10**4, 10**6, 10**8]),
    ],
)
def test_ticks(values: list[float], ticks: list[float]) -> None:
    assert Scale.of(values, LEFT, RIGHT).ticks() == pytest.approx(ticks)


def test_scale_with_zero_is_linear() -> None:
    scale = Scale.of([0.0, 1_000.0], LEFT, RIGHT)
    assert (scale.is_log, scale.at(0.0)) == (False, LEFT)


@pytest.mark.parametrize(("good", "bad", "left"), [(10, 5, 15), (5_000, 300, MAX_POINTS), (10, 5_000, MAX_POINTS)])
def test_passed_trials_are_thinned_first(good: int, bad: int, left: int) -> None:
    points = [Point(each, 1, "fail" if each < bad else "pass", each + 1, 50, 1.0) for each in range(good + bad)]
    found = thinned(points)
    assert len(found) == left == len(set(found))
    assert sum(point.verdict == "fail" for point in found) == min(bad, MAX_POINTS)


def test_scores_are_drawn_if_costs_are_unknown() -> None:
    free = [Point(number, 1, "pass", 10 * number, None, 0.5) for number in range(3)]
    plot = scatter(free)
    assert plot is not None
    assert (plot.shows_cost, plot.height(free[0]), plot.trials, plot.without) == (False, 0.5, 3, 0)
    assert scatter(free[:1]) is None
    priced = scatter([Point(number, 1, "pass", 10, 10**12 * number, 0.5) for number in (1, 2, 3)])
    assert priced is not None
    assert [priced.height(each) for each in priced.points] == [1, 2, 3]
    assert priced.shows_cost
    assert 3 <= priced.y.high < 4
