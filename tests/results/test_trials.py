"""From trials to the verdict of a case, and when it is settled: against every way in which trials can go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import Require, Verdict
from agentv_ci.results.trials import Result, enough, is_settled, needed, verdict_of_trials

SCORES = (0.0, 0.3, 0.5999999, 0.6, 0.7, 1.0)
ERROR = Result("error", 0.0)
GRADED: tuple[Verdict, ...] = ("pass", "borderline", "fail")
ALL_RESULTS = (ERROR, *(Result(verdict, score) for verdict in GRADED for score in SCORES))
REQUIREMENTS: tuple[Require, ...] = ("majority", "all", "any")
PASS, MISS, ALMOST = Result("pass", 1.0), Result("fail", 0.0), Result("borderline", 0.7)

results_of = st.sampled_from(ALL_RESULTS)
requirements = st.sampled_from(REQUIREMENTS)


@st.composite
def underway(draw: st.DrawFn) -> tuple[list[Result], int]:
    """Trials that ran, and how many are planned."""
    planned = draw(st.integers(1, 5))
    return draw(st.lists(results_of, max_size=planned)), planned


def ways(number: int) -> Iterator[tuple[Result, ...]]:
    """What so many trials can come to; their order does not matter."""
    return combinations_with_replacement(ALL_RESULTS, number)


def verdict(results: Sequence[Result], planned: int, require: Require) -> Verdict:
    return verdict_of_trials(results, planned, require)[0]


def can_change(results: Sequence[Result], planned: int, require: Require) -> bool:
    """Whether any way to go on ends with another verdict than there is now."""
    now = verdict(results, planned, require)
    return any(verdict([*results, *rest], planned, require) != now for rest in ways(planned - len(results)))


@settings(max_examples=300)
@given(underway(), requirements)
@example(([], 1), "majority")
@example(([], 5), "any")
@example(([Result("fail", 0.9)], 3), "all")
@example(([Result("fail", 0.9), ERROR], 3), "all")
@example(([Result("borderline", 0.6)], 2), "all")
@example(([Result("borderline", 0.7), MISS], 3), "majority")
@example(([ERROR] * 4, 5), "majority")
@example(([Result("fail", 0.5999999)] * 4, 5), "all")
@example(([Result("borderline", 0.6)] * 2, 2), "majority")
def test_it_is_settled_exactly_when_nothing_that_comes_can_change_the_verdict(
    case: tuple[list[Result], int], require: Require
) -> None:
    results, planned = case
    assert is_settled(results, planned, require) != can_change(results, planned, require)


@pytest.mark.parametrize("require", REQUIREMENTS)
@pytest.mark.parametrize("planned", [1, 2, 3])
def test_the_same_for_everything_that_few_trials_can_come_to(planned: int, require: Require) -> None:
    for number in range(planned + 1):
        for results in ways(number):
            found = is_settled(results, planned, require)
            assert found != can_change(results, planned, require), (results, planned, require)


@settings(max_examples=100)
@given(underway(), requirements)
def test_fewer_than_needed_settle_nothing_and_so_many_may(case: tuple[list[Result], int], require: Require) -> None:
    results, planned = case
    least = needed(results, planned, require)
    assert 0 <= least <= planned - len(results)
    for number in range(least):
        assert not any(is_settled([*results, *rest], planned, require) for rest in ways(number))
    assert any(is_settled([*results, *rest], planned, require) for rest in ways(least))


@given(st.integers(1, 40), st.data(), requirements)
def test_none_is_needed_exactly_when_it_is_settled(planned: int, data: st.DataObject, require: Require) -> None:
    results = data.draw(st.lists(results_of, max_size=planned))
    assert (needed(results, planned, require) == 0) == is_settled(results, planned, require)


@given(st.integers(1, 12), st.data(), requirements)
def test_order_of_trials_does_not_matter(planned: int, data: st.DataObject, require: Require) -> None:
    results = data.draw(st.lists(st.tuples(st.sampled_from(GRADED), st.floats(0, 1)), max_size=planned))
    trials = [Result(*each) for each in results]
    shuffled = data.draw(st.permutations(trials))
    assert verdict_of_trials(shuffled, planned, require) == verdict_of_trials(trials, planned, require)
    assert is_settled(shuffled, planned, require) == is_settled(trials, planned, require)
    assert needed(shuffled, planned, require) == needed(trials, planned, require)


@given(st.integers(1, 12), st.data(), requirements)
def test_what_is_settled_stays_so(planned: int, data: st.DataObject, require: Require) -> None:
    results = data.draw(st.lists(results_of, min_size=planned, max_size=planned))
    settled = [is_settled(results[:number], planned, require) for number in range(planned + 1)]
    assert settled == sorted(settled)
    assert settled[-1]
    first = settled.index(True)
    assert verdict(results[:first], planned, require) == verdict(results, planned, require)


@given(st.integers(1, 12), st.data(), requirements)
def test_waves_of_what_is_needed_end_with_the_first_trial_that_settles(
    planned: int, data: st.DataObject, require: Require
) -> None:
    results = data.draw(st.lists(results_of, min_size=planned, max_size=planned))
    ran = 0
    while wave := needed(results[:ran], planned, require):
        ran += wave
    assert ran == next(number for number in range(planned + 1) if is_settled(results[:number], planned, require))


@pytest.mark.parametrize(("planned", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (99, 50), (100, 51)])
def test_majority_is_more_than_half_of_all_trials(planned: int, majority: int) -> None:
    assert enough(planned, "majority") == majority


@pytest.mark.parametrize("planned", [1, 2, 5])
def test_all_are_all_and_any_is_one(planned: int) -> None:
    assert (enough(planned, "all"), enough(planned, "any")) == (planned, 1)


@pytest.mark.parametrize(
    ("results", "planned", "require", "expected"),
    [
        pytest.param([PASS, PASS], 3, "majority", 0, id="two of three passed"),
        pytest.param([PASS, PASS], 4, "majority", 1, id="half is no majority"),
        pytest.param([PASS, MISS], 3, "majority", 1, id="one each of three"),
        pytest.param([MISS, MISS], 3, "majority", 0, id="two of three failed for good"),
        pytest.param([ALMOST, ALMOST], 3, "majority", 1, id="the last one moves borderline"),
        pytest.param([], 5, "majority", 3, id="at least three of five"),
        pytest.param([PASS], 3, "all", 1, id="a miss may end it"),
        pytest.param([PASS, PASS], 3, "all", 1, id="the last of all"),
        pytest.param([MISS], 3, "all", 1, id="lost, but perhaps borderline"),
        pytest.param([MISS, MISS], 3, "all", 0, id="lost, and too low for borderline"),
        pytest.param([PASS, PASS, PASS, MISS], 5, "all", 0, id="lost, and too high for fail"),
        pytest.param([], 5, "any", 1, id="one may do"),
        pytest.param([PASS], 5, "any", 0, id="one did"),
        pytest.param([MISS] * 4, 5, "any", 1, id="the last chance"),
        pytest.param([ERROR], 3, "all", 1, id="an error is no pass, but not graded either"),
        pytest.param([ERROR, ERROR], 3, "majority", 1, id="one answer makes it a failure"),
        pytest.param([ERROR] * 3, 3, "majority", 0, id="nothing is left to ask"),
    ],
)
def test_so_many_are_needed(results: list[Result], planned: int, require: Require, expected: int) -> None:
    assert needed(results, planned, require) == expected


def test_errors_are_no_passes_and_do_not_lower_the_score() -> None:
    assert verdict_of_trials([PASS, ERROR, ERROR], 3, "majority") == ("borderline", 1.0)
    assert verdict_of_trials([PASS, PASS, ERROR], 3, "majority") == ("pass", 1.0)
    assert verdict_of_trials([ERROR, Result("error", 0.9)], 2, "any") == ("error", 0.0)
    assert verdict_of_trials([], 2, "any") == ("error", 0.0)


def test_a_lone_trial_is_taken_at_its_word() -> None:
    assert verdict_of_trials([Result("fail", 0.9)], 1, "majority") == ("fail", 0.9)
    assert verdict_of_trials([Result("fail", 0.9), ERROR], 2, "all") == ("fail", 0.9)
    assert verdict_of_trials([Result("fail", 0.9), Result("fail", 0.9)], 2, "all") == ("borderline", 0.9)


def test_float_noise_decides_nothing_at_the_line_of_borderline() -> None:
    assert verdict([Result("fail", 0.1 + 0.2), Result("borderline", 0.9)], 2, "all") == "borderline"
    assert is_settled([Result("borderline", 0.9), Result("borderline", 0.9), Result("fail", 0.0)], 3, "all")
    assert is_settled([Result("borderline", 0.9), Result("borderline", 0.9)], 3, "all")
