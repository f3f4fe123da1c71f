"""Which cases got worse beyond chance."""

from __future__ import annotations

import random
from itertools import combinations, product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agentv_ci.analysis.case_changes import Trials, dropped, p_of_drop, p_of_total_drop

COUNTS = st.integers(1, 8)


@st.composite
def trials_of(draw: st.DrawFn) -> Trials:
    base, head = draw(COUNTS), draw(COUNTS)
    return Trials(draw(st.integers(0, base)), base, draw(st.integers(0, head)), head)


@given(trials_of())
def test_p_values_are_fishers(trials: Trials) -> None:
    base_passed, base, head_passed, head = trials
    table = [[head_passed, head - head_passed], [base_passed, base - base_passed]]
    assert p_of_drop(trials) == pytest.approx(stats.fisher_exact(table, "less").pvalue)
    assert p_of_total_drop([trials]) == pytest.approx(p_of_drop(trials))


def test_the_total_drop_counts_all_ways_to_spread_the_passes() -> None:
    cases = [Trials(2, 2, 0, 2), Trials(1, 2, 1, 2), Trials(3, 3, 1, 2)]
    observed = sum(each.head_passed for each in cases)
    spreads = (combinations(range(each.base + each.head), each.base_passed + each.head_passed) for each in cases)
    ways = [
        sum(place < each.head for each, places in zip(cases, spread, strict=True) for place in places)
        for spread in product(*spreads)
    ]
    assert p_of_total_drop(cases) == pytest.approx(sum(each <= observed for each in ways) / len(ways))


@pytest.mark.parametrize(
    ("cases", "rate", "called"),
    [
        ([Trials(5, 5, 0, 5)], 0.0125, [True]),
        ([Trials(5, 5, 1, 5)], 0.0125, [False]),
        ([Trials(5, 5, 1, 5)], 0.025, [True]),
        ([Trials(5, 5, 0, 5)] * 8, 0.0125, [True] * 8),
        ([Trials(0, 5, 5, 5)], 0.5, [False]),
        ([Trials(1, 1, 0, 1)] * 50, 0.05, [False] * 50),
        # Cases that always pass could not show a drop, and do not hide one.
        ([Trials(5, 5, 1, 5), *[Trials(5, 5, 5, 5)] * 1000], 0.025, [True, *[False] * 1000]),
        # Nor two.
        ([Trials(5, 5, 1, 5)] * 2 + [Trials(5, 5, 5, 5)] * 50, 0.025, [True] * 2 + [False] * 50),
        ([], 0.05, []),
    ],
)
def test_cases_that_are_called_worse(cases: list[Trials], rate: float, called: list[bool]) -> None:
    assert list(dropped(cases, rate)) == called


@given(st.lists(trials_of(), max_size=12), st.floats(0.001, 0.2), st.randoms(use_true_random=False))
def test_calls_do_not_depend_on_the_order_and_grow_with_the_rate(
    cases: list[Trials], rate: float, chance: random.Random
) -> None:
    calls = dict(zip(cases, dropped(cases, rate), strict=True))
    shuffled = chance.sample(cases, len(cases))
    assert dict(zip(shuffled, dropped(shuffled, rate), strict=True)) == calls
    assert all(p_of_drop(each) <= 0.5 for each, is_called in calls.items() if is_called)


@pytest.mark.parametrize("rate", [0.05, 0.2])
@pytest.mark.parametrize(("base", "head", "passed"), [(5, 5, (5, 5, 4)), (3, 3, (3, 3, 3, 3)), (4, 2, (3, 2, 5))])
def test_without_a_change_any_call_is_rare(base: int, head: int, passed: tuple[int, ...], rate: float) -> None:
    """All ways to spread the passes over the sides, each with its probability."""
    wrong = 0.0
    for drawn in product(range(head + 1), repeat=len(passed)):
        ways = [
            comb(head, now) * comb(base, total - now) / comb(base + head, total) if 0 <= total - now <= base else 0.0
            for now, total in zip(drawn, passed, strict=True)
        ]
        probability = 1.0
        for each in ways:
            probability *= each
        if probability:
            cases = [Trials(total - now, base, now, head) for now, total in zip(drawn, passed, strict=True)]
            wrong += probability * any(dropped(cases, rate))
    assert wrong <= rate
