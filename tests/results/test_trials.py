"""The verdict of a case from its trials, and whether it is settled, compared with all ways to continue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentv_ci.contracts.base import Require, Verdict
from agentv_ci.results.trials import Result, enough, is_graded, is_settled, needed, verdict_of_trials

SCORES = (0.0, 0.3, 0.5999999, 0.6, 0.7, 1.0)
ERROR, CRASH = Result("error", 0.0), Result("error", 0.0, is_crash=True)
GRADED: tuple[Verdict, ...] = ("pass", "borderline", "fail")
ALL_RESULTS = (ERROR, CRASH, *(Result(verdict, score) for verdict in GRADED for score in SCORES))
REQUIREMENTS: tuple[Require, ...] = ("majority", "all", "any")
PASS, MISS, ALMOST = Result("pass", 1.0), Result("fail", 0.0), Result("borderline", 0.7)
LOW = Result("fail", 0.9)
"""A required evaluator failed it."""

results_of = st.sampled_from(ALL_RESULTS)
requirements = st.sampled_from(REQUIREMENTS)


@st.composite
def underway(draw: st.DrawFn) -> tuple[list[Result], int]:
    """The results of trials that ran, and the number that is planned."""
    planned = draw(st.integers(1, 5))
    return draw(st.lists(results_of, max_size=planned)), planned


def ways(number: int) -> Iterator[tuple[Result, ...]]:
    """All results of this many trials, in any order."""
    return combinations_with_replacement(ALL_RESULTS, number)


def passes(results: Sequence[Result], planned: int, require: Require) -> bool | None:
    """Whether a case passes; None without a grade."""
    verdict, _ = verdict_of_trials(results, planned, require)
    return verdict == "pass" if any(map(is_graded, results)) else None


def can_change(results: Sequence[Result], planned: int, require: Require) -> bool:
    """Whether any way to continue changes whether the case passes."""
    now = passes(results, planned, require)
    return any(passes([*results, *rest], planned, require) != now for rest in ways(planned - len(results)))


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
@example(([Result("borderline", 0.9)] * 2, 3), "all")
@example(([Result("borderline", 0.9)] * 2 + [MISS], 3), "all")
def test_case_is_settled_exactly_when_no_remaining_trial_can_change_whether_it_passes(
    case: tuple[list[Result], int], require: Require
) -> None:
    results, planned = case
    assert is_settled(results, planned, require) != can_change(results, planned, require)


@settings(max_examples=100)
@given(underway(), requirements)
def test_needed_is_the_fewest_trials_that_can_settle(case: tuple[list[Result], int], require: Require) -> None:
    results, planned = case
    least = needed(results, planned, require)
    assert 0 <= least <= planned - len(results)
    for number in range(least):
        assert not any(is_settled([*results, *rest], planned, require) for rest in ways(number))
    assert any(is_settled([*results, *rest], planned, require) for rest in ways(least))
    assert (least == 0) == is_settled(results, planned, require)


@pytest.mark.parametrize(
    ("results", "planned", "require", "left"),
    [
        ([Result("fail", 0.9)], 5, "all", 0),
        ([Result("borderline", 0.7)], 5, "all", 0),
        ([PASS, ALMOST], 5, "all", 0),
        ([ALMOST, MISS], 3, "majority", 0),
        ([ERROR], 5, "all", 1),
        ([ERROR] * 3, 5, "majority", 1),
        ([CRASH], 3, "all", 0),
        ([CRASH], 3, "majority", 1),
        ([CRASH] * 2, 3, "majority", 0),
        ([CRASH, ERROR, ERROR], 5, "majority", 0),
        ([ERROR, MISS], 5, "all", 0),
    ],
)
def test_trials_end_when_a_case_cannot_pass_and_one_is_graded(
    results: list[Result], planned: int, require: Require, left: int
) -> None:
    assert needed(results, planned, require) == left


@pytest.mark.parametrize(("planned", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (99, 50), (100, 51)])
def test_majority_is_more_than_half_of_all_trials(planned: int, majority: int) -> None:
    assert [enough(planned, require) for require in REQUIREMENTS] == [majority, planned, 1]


@pytest.mark.parametrize(
    ("results", "planned", "require", "expected"),
    [
        ([PASS, ERROR, ERROR], 3, "majority", ("borderline", 1.0)),
        ([PASS, PASS, ERROR], 3, "majority", ("pass", 1.0)),
        ([PASS, CRASH, CRASH], 3, "majority", ("fail", 0.333333333333)),
        ([PASS, PASS, CRASH], 3, "majority", ("pass", 0.666666666667)),
        ([CRASH] * 3, 3, "majority", ("error", 0.0)),
        ([CRASH, ERROR], 2, "any", ("error", 0.0)),
        ([LOW, CRASH], 2, "all", ("fail", 0.45)),
        ([ERROR, Result("error", 0.9)], 2, "any", ("error", 0.0)),
        ([], 2, "any", ("error", 0.0)),
        ([LOW], 1, "majority", ("fail", 0.9)),
        ([LOW, ERROR], 2, "all", ("fail", 0.9)),
        ([LOW, LOW], 2, "all", ("borderline", 0.9)),
        ([Result("fail", 0.1 + 0.2), Result("borderline", 0.9)], 2, "all", ("borderline", 0.6)),
    ],
)
def test_verdict_and_score_of_trials(
    results: list[Result], planned: int, require: Require, expected: tuple[Verdict, float]
) -> None:
    assert verdict_of_trials(results, planned, require) == expected
