"""Plans, compared with statsmodels, and with experiments of known effects."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestPower

from agentv_ci.analysis.experiment.planning import (
    MOST_TRIALS,
    Design,
    Spread,
    detectable,
    spread_of_pairs,
    spread_of_pass_rate,
    spread_of_trials,
    trials_needed,
)
from agentv_ci.analysis.statistics.effects import Metric, Pair, effect
from tests.analysis.builders import COST, SCORE, pairs_of

DESIGNS = st.builds(
    Design, st.sampled_from([0.01, 0.05]), st.sampled_from([0.8, 0.95]), st.integers(12, 300), st.booleans()
)
SPREADS = st.builds(Spread, st.floats(0.01, 1), st.none() | st.floats(0, 0.05))


@settings(max_examples=25)
@given(SPREADS, DESIGNS, st.integers(1, 50))
def test_trials_needed_are_the_fewest_that_find_a_change(spread: Spread, design: Design, trials: int) -> None:
    found = detectable(spread, design, trials)
    if found is not None:
        assert (trials_needed(spread, design, found) or MOST_TRIALS) <= trials
        assert (trials_needed(spread, design, found * 0.99) or MOST_TRIALS) >= trials


@settings(max_examples=25)
@given(SPREADS, DESIGNS)
def test_more_trials_cases_and_patience_find_smaller_changes(spread: Spread, design: Design) -> None:
    more_cases = Design(design.alpha, design.power, design.cases * 2, design.looks)
    at_once = Design(design.alpha, design.power, design.cases)
    found = [detectable(spread, design, trials) or math.inf for trials in (1, 3, 9)]
    assert all(later <= earlier for earlier, later in pairwise(found))
    assert (detectable(spread, more_cases, 3) or math.inf) <= found[1]
    assert (detectable(spread, at_once, 3) or math.inf) <= found[1]


@pytest.mark.parametrize("cases", [30, 100, 400])
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_power_of_one_trial_of_alike_cases_is_that_of_students_test(cases: int, power: float) -> None:
    spread = Spread(within=0.25, between=0.0, largest=0.0)
    expected = TTestPower().solve_power(nobs=cases, alpha=0.05, power=power) * 0.5
    assert detectable(spread, Design(0.05, power, cases), 1) == pytest.approx(expected, rel=0.02)


def test_the_pair_that_is_not_seen_counts_in_plans() -> None:
    spread = Spread(within=1e-12, between=0.0, largest=1.0)
    expected = stats.t.isf(0.025, 19) / math.sqrt(4 * 20 * 19)
    assert detectable(spread, Design(0.05, 0.9, 20), 4) == pytest.approx(expected, abs=1e-5)


def found_share(trials: int, *, cases: int, looks: bool) -> float:
    """Return how often a drop of 0.2 in half of the cases is found, by the effects of the product."""
    chance = np.random.default_rng(cases + trials)
    count = 0
    for _ in range(300):
        rates = 0.8 - 0.2 * (np.arange(cases) % 2)
        head, base = (chance.random((cases, trials)) < each for each in (rates[:, None], 0.8))
        pairs = pairs_of((head.astype(float) - base).tolist())
        found = effect(SCORE, pairs, smallest=0.1 if looks else None)
        assert found is not None
        count += found.p_value <= 0.05 and found.estimate < 0
    return count / 300


@pytest.mark.slow
@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("cases", [20, 60])
def test_planned_trials_find_the_change(cases: int, *, looks: bool) -> None:
    whole, dropped = 0.8 * 0.2, 0.6 * 0.4
    trials = trials_needed(Spread(within=(3 * whole + dropped) / 2), Design(0.05, 0.9, cases, looks), 0.1)
    assert trials is not None
    assert found_share(trials, cases=cases, looks=looks) == pytest.approx(0.9, abs=0.06)
    assert found_share(max(1, trials // 3), cases=cases, looks=looks) < 0.7


def test_too_few_cases_show_no_change_however_many_trials() -> None:
    design = Design(0.05, 0.9, 5)
    assert (detectable(Spread(0.3), design, 1000), trials_needed(Spread(0.3), design, 1.0)) == (None, None)
    # Half of six cases that change alone give t = √5 at most, less than the 2.57 that are significant.
    assert detectable(Spread(0.3), Design(0.05, 0.9, 6), 1000) is None
    assert detectable(Spread(0.3, between=0.0), Design(0.05, 0.9, 6), 1000) is not None
    assert trials_needed(Spread(0.3), Design(0.05, 0.9, 10, looks=True), 0.1) is None


@pytest.mark.parametrize("between", [0.0, None])
def test_what_never_varies_shows_any_change(between: float | None) -> None:
    steady, design = Spread(0.0, between, largest=0.0), Design(0.05, 0.9, 20, looks=True)
    assert detectable(steady, design, 1) == pytest.approx(0, abs=1e-5)
    assert trials_needed(steady, design, 0.01) == 1


def test_spread_of_a_pass_rate_is_that_of_two_arms() -> None:
    assert spread_of_pass_rate(0.5) == Spread(within=0.5)
    assert spread_of_pass_rate(0.9).within == pytest.approx(0.18)


def test_spread_of_trials_is_pooled_over_cases_and_doubled() -> None:
    trials = [("a", 0.0), ("a", 1.0), ("b", 0.5), ("b", 0.5), ("b", 0.5), ("c", 1.0)]
    found = spread_of_trials(trials)
    assert found is not None
    assert found.within == pytest.approx(2 * 0.5 / 3)
    assert (found.between, found.largest) == (None, 1.0)
    assert spread_of_trials([("a", 0.0), ("b", 1.0)]) is None
    assert spread_of_trials([]) is None


def test_spread_of_pairs_has_the_components_of_the_analysis_of_variance() -> None:
    chance = np.random.default_rng(4)
    changes = chance.normal(0, 0.1, (400, 1)) + chance.normal(0, 0.2, (400, 3))
    found = spread_of_pairs(SCORE, pairs_of(changes.tolist()))
    assert found is not None
    assert found.within == pytest.approx(changes.var(axis=1, ddof=1).mean())
    assert found.between == pytest.approx(changes.mean(axis=1).var(ddof=1) - found.within / 3)
    assert found.between == pytest.approx(0.01, rel=0.2)
    assert found.largest == pytest.approx(np.abs(changes).max())


def test_spread_of_pairs_needs_two_cases_and_a_case_with_two_trials() -> None:
    assert spread_of_pairs(SCORE, pairs_of([[0.1], [0.2]])) is None
    assert spread_of_pairs(SCORE, pairs_of([[0.1, 0.2]])) is None
    assert spread_of_pairs(SCORE, pairs_of([[0.125, 0.375], [0.125, 0.375]])) == Spread(0.03125, 0.0, 0.375)
    free = [Pair("a", "a", 1, 0.0, 1.0), Pair("a", "a", 2, 1.0, 1.0), Pair("b", "b", 1, 1.0, 1.0)]
    assert spread_of_pairs(COST, free) is None
    assert spread_of_pairs(Metric("score"), free) is not None
