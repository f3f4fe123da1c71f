"""Exact tests of whether trials pass less often than before."""

from __future__ import annotations

import random
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agentv_ci.analysis.statistics import exact_tests
from agentv_ci.analysis.statistics.exact_tests import Trials, cochran_mantel_haenszel, fisher

COUNTS = st.integers(1, 8)


@st.composite
def trials_of(draw: st.DrawFn) -> Trials:
    base, head = draw(COUNTS), draw(COUNTS)
    return Trials(draw(st.integers(0, base)), base, draw(st.integers(0, head)), head)


@given(trials_of())
def test_the_p_values_of_one_case_are_scipys(trials: Trials) -> None:
    base_passed, base, head_passed, head = trials
    table = [[head_passed, head - head_passed], [base_passed, base - base_passed]]
    assert fisher(trials) == pytest.approx(stats.fisher_exact(table, "less").pvalue)
    assert cochran_mantel_haenszel([trials]) == pytest.approx(fisher(trials))


def test_all_ways_to_spread_the_passes_of_several_cases_count() -> None:
    cases = [Trials(2, 2, 0, 2), Trials(1, 2, 1, 2), Trials(3, 3, 1, 2)]
    observed = sum(case.head_passed for case in cases)
    spreads = (combinations(range(case.base + case.head), case.base_passed + case.head_passed) for case in cases)
    ways = [
        sum(place < case.head for case, places in zip(cases, spread, strict=True) for place in places)
        for spread in product(*spreads)
    ]
    assert cochran_mantel_haenszel(cases) == pytest.approx(sum(way <= observed for way in ways) / len(ways))


@pytest.mark.parametrize(("worse", "better"), [(6, 0), (9, 1), (3, 3), (40, 20), (0, 0)])
def test_with_one_trial_a_side_it_is_the_sign_test(worse: int, better: int) -> None:
    cases = [Trials(1, 1, 0, 1)] * worse + [Trials(0, 1, 1, 1)] * better + [Trials(1, 1, 1, 1)] * 5
    assert cochran_mantel_haenszel(cases) == pytest.approx(stats.binom.cdf(better, worse + better, 0.5))


@pytest.mark.parametrize("drop", [0, 40, 60])
def test_of_many_trials_it_is_the_normal_approximation(drop: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    cases = [Trials(passed := chance.randint(5, 10), 10, passed - (number < drop), 10) for number in range(400)]
    exact = cochran_mantel_haenszel(cases)
    monkeypatch.setattr(exact_tests, "EXACT_UP_TO", 0.0)
    assert cochran_mantel_haenszel(cases) == pytest.approx(exact, rel=0.01)


@given(st.lists(trials_of(), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_one_more_failure_never_makes_a_drop_less_certain(cases: list[Trials], chance: random.Random) -> None:
    place = chance.randrange(len(cases))
    case = cases[place]
    if not case.head_passed:
        return
    worse = case._replace(head_passed=case.head_passed - 1)
    assert fisher(worse) <= fisher(case)
    more = [*cases[:place], worse, *cases[place + 1 :]]
    assert cochran_mantel_haenszel(more) <= cochran_mantel_haenszel(cases) * (1 + 1e-12)
