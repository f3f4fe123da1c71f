"""Where the marks of the plots stand."""

from __future__ import annotations

import pytest

from agentv_ci.analysis.statistics import describe
from agentv_ci.report.renderers.html.payload import Point
from agentv_ci.report.renderers.html.plots import BOTTOM, LEFT, MAX_POINTS, RIGHT, TOP, Scale, columns, scatter, thinned
from tests.report.builders import row, whole
from tests.report.shop import shop_run


def test_columns_are_those_of_the_run_report() -> None:
    run = shop_run()
    counts = tuple(each.total() for each in columns(run.outcomes))
    assert counts == run.report.statistics.histogram == describe(run.outcomes).histogram


def test_what_is_not_graded_is_in_no_column() -> None:
    assert not any(columns(whole([row("error")])[1]))


@pytest.mark.parametrize("spread", [2, 1_000_000])
def test_every_mark_stands_inside_the_plot(spread: float) -> None:
    values = [1.0, 1.5, float(spread)]
    scale = Scale.of(values, LEFT, RIGHT)
    assert scale.is_log == (spread > 30)
    assert all(LEFT <= scale.at(value) <= RIGHT for value in [*values, *scale.ticks()])
    assert 2 <= len(scale.ticks()) <= 8
    upwards = Scale.of(values, BOTTOM, TOP)
    assert upwards.at(values[0]) > upwards.at(values[-1])


def points(good: int, bad: int) -> list[Point]:
    return [Point(number, 1, "fail" if number < bad else "pass", number + 1, 50, 1.0) for number in range(good + bad)]


@pytest.mark.parametrize(("good", "bad", "left"), [(10, 5, 15), (5_000, 300, MAX_POINTS), (10, 5_000, MAX_POINTS)])
def test_failures_are_the_last_to_be_thinned(good: int, bad: int, left: int) -> None:
    found = thinned(points(good, bad))
    assert len(found) == left == len(set(found))
    assert sum(point.verdict == "fail" for point in found) == min(bad, MAX_POINTS)


def test_without_costs_time_stands_against_score() -> None:
    free = [Point(number, 1, "pass", 10 * number, None, 0.5) for number in range(3)]
    plot = scatter(free)
    assert plot is not None
    assert not plot.shows_cost
    assert scatter(free[:1]) is None
