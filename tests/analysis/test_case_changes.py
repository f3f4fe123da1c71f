"""Which cases got worse, among all of them."""

from __future__ import annotations

import random
from itertools import product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv_ci.analysis.comparison.case_changes import dropped
from agentv_ci.analysis.statistics.exact_tests import Trials, fisher
from tests.analysis.test_exact_tests import trials_of

BROKEN, REPAIRED, STEADY = Trials(5, 5, 0, 5), Trials(0, 5, 5, 5), Trials(5, 5, 5, 5)


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
        # A case that got better does not hide one that got worse, whatever their number.
        ([BROKEN, *[REPAIRED] * 6], 0.025, [True, *[False] * 6]),
        ([BROKEN, *[REPAIRED] * 200], 0.025, [True, *[False] * 200]),
        ([BROKEN, *[Trials(1, 5, 5, 5)] * 50], 0.025, [True, *[False] * 50]),
        ([BROKEN, *[Trials(1, 5, 4, 5)] * 50], 0.025, [True, *[False] * 50]),
        ([BROKEN] * 4 + [REPAIRED] * 20, 0.025, [True] * 4 + [False] * 20),
        ([Trials(10, 10, 4, 10), *[Trials(2, 10, 9, 10)] * 100], 0.025, [True, *[False] * 100]),
        # Cases that vary as much without getting better do.
        ([BROKEN, *[Trials(3, 5, 2, 5)] * 50], 0.025, [False] * 51),
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
    assert all(fisher(each) <= 0.5 for each, is_called in calls.items() if is_called)


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


@pytest.mark.parametrize("others", [[STEADY] * 6, [REPAIRED] * 6, [STEADY] * 3 + [REPAIRED] * 3])
def test_more_broken_cases_are_never_better_news(others: list[Trials]) -> None:
    for broken in range(1, 12):
        calls = dropped([BROKEN] * broken + others, 0.025)
        assert calls == (True,) * broken + (False,) * len(others)
