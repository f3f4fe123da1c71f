"""Effects, compared with scipy, statsmodels and the matrices of the papers."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import linalg, stats
from statsmodels.regression.linear_model import OLS

from agentv_ci.analysis.statistics.effects import LEAST_ERROR, Effect, Metric, Pair, effect, quantile
from tests.analysis.builders import COST, SCORE, experiments, pairs_of

LOOKS = st.sampled_from([None, 0.05, 0.3])
P95 = Metric("p95", scale="ratio", higher_is_better=False, quantile=0.95)


def known(metric: Metric, pairs: Sequence[Pair], smallest: float | None = None) -> Effect:
    found = effect(metric, pairs, smallest=smallest)
    assert found is not None
    return found


def by_case(pairs: Sequence[Pair]) -> tuple[NDArray[np.float64], list[str], list[int], float]:
    """Return the mean change of each case, its cluster, its number of trials, and the largest change."""
    changes = defaultdict(list)
    for each in pairs:
        changes[each.cluster, each.case].append(each.head - each.base)
    largest = max(abs(change) for case in changes.values() for change in case)
    is_whole = all(change in (-1, 0, 1) for case in changes.values() for change in case)
    means = np.array([sum(case) / len(case) for case in changes.values()])
    return means, [key[0] for key in changes], [len(case) for case in changes.values()], 1.0 if is_whole else largest


def unseen(trials: Sequence[int], clusters: int, largest: float) -> float:
    cases = len(trials)
    return largest**2 * float(np.mean([1 / each for each in trials])) / cases**2 * clusters / (clusters - 1)


def bias_reduced(means: NDArray[np.float64], clusters: Sequence[str]) -> tuple[float, float]:
    """CR2 and its degrees of freedom by the matrices of Bell and McCaffrey, for a regression on a constant."""
    count = len(means)
    design = np.ones((count, 1))
    bread = 1 / count
    residual_maker = np.eye(count) - design @ design.T * bread
    members = [[index for index, each in enumerate(clusters) if each == name] for name in dict.fromkeys(clusters)]
    variance, columns = 0.0, []
    for each in members:
        adjustment = linalg.inv(linalg.sqrtm(residual_maker[np.ix_(each, each)]).real)
        residuals = residual_maker[each] @ means
        variance += (bread * design[each].T @ adjustment @ residuals).item() ** 2
        columns.append(residual_maker[each].T @ adjustment @ design[each] * bread)
    omega = np.hstack(columns)
    gram = omega.T @ omega
    return variance, np.trace(gram) ** 2 / np.trace(gram @ gram)


@settings(max_examples=60)
@given(experiments())
def test_error_and_degrees_are_those_of_bell_and_mccaffrey(pairs: list[Pair]) -> None:
    found = known(SCORE, pairs)
    means, clusters, trials, largest = by_case(pairs)
    variance, degrees = bias_reduced(means, clusters)
    total = variance + unseen(trials, len(set(clusters)), largest)
    assert found.estimate == pytest.approx(means.mean(), abs=1e-12)
    assert found.error == pytest.approx(max(math.sqrt(total), LEAST_ERROR), rel=1e-6)
    assert found.degrees == pytest.approx(degrees, rel=1e-6)
    assert (found.clusters, found.cases, found.pairs) == (len(set(clusters)), len(trials), sum(trials))


@given(st.lists(st.lists(st.floats(-0.5, 0.5), min_size=3, max_size=3), min_size=4, max_size=20))
def test_clusters_of_one_size_are_students_and_statsmodels(changes: list[list[float]]) -> None:
    clusters = [str(case // 2) for case in range(len(changes) // 2 * 2)]
    pairs = pairs_of(changes[: len(clusters)], clusters)
    means, _, trials, largest = by_case(pairs)
    fitted = OLS(means, np.ones(len(means))).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(clusters, dtype=int)}, use_t=True
    )
    found = known(SCORE, pairs)
    spread = found.error**2 - unseen(trials, len(set(clusters)), largest)
    assert spread == pytest.approx(float(fitted.bse[0]) ** 2, rel=1e-6, abs=1e-9)
    assert found.degrees == pytest.approx(len(set(clusters)) - 1)
    assert found.method == f"t at {len(set(clusters)) - 1} degrees of freedom, errors by cluster (CR2)"


@given(experiments(least_cases=6), st.sampled_from([0.9, 0.95, 0.99]))
def test_p_value_and_interval_are_students(pairs: list[Pair], confidence: float) -> None:
    found = known(COST, pairs)
    expected = max(2 * stats.t.sf(abs(found.estimate) / found.error, found.degrees), 2.0 ** (1 - found.clusters))
    assert found.p_value == pytest.approx(expected, rel=1e-6)
    half = stats.t.isf((1 - confidence) / 2, found.degrees) * found.error
    if 1 - confidence >= 2.0 ** (1 - found.clusters):
        assert found.interval(confidence) == pytest.approx((found.estimate - half, found.estimate + half), rel=1e-6)


@given(experiments(), LOOKS, st.randoms(use_true_random=False))
def test_order_does_not_matter(pairs: list[Pair], smallest: float | None, chance: random.Random) -> None:
    shuffled = [*pairs]
    chance.shuffle(shuffled)
    for metric in (SCORE, COST, P95):
        assert effect(metric, shuffled, smallest=smallest) == effect(metric, pairs, smallest=smallest)


@given(experiments(), LOOKS)
def test_swapped_sides_mirror_the_effect(pairs: list[Pair], smallest: float | None) -> None:
    swapped = [Pair(each.cluster, each.case, each.trial, each.head, each.base) for each in pairs]
    for metric in (SCORE, COST):
        one, other = known(metric, pairs, smallest), known(metric, swapped, smallest)
        assert other.estimate == pytest.approx(-one.estimate, abs=1e-12)
        assert other.p_value == pytest.approx(one.p_value)
        low, high = one.interval(0.95)
        assert other.interval(0.95) == pytest.approx((-high, -low), rel=1e-9, abs=1e-9)


@given(experiments(least_cases=9), LOOKS, st.sampled_from([0.01, 0.05, 0.3]))
def test_interval_ends_where_the_p_value_is_alpha(pairs: list[Pair], smallest: float | None, alpha: float) -> None:
    found = known(COST, pairs, smallest)
    low, high = found.interval(1 - alpha)
    if math.isfinite(low) and low > -100 and found.error > LEAST_ERROR:
        assert found.p_against(low) == pytest.approx(alpha, rel=1e-4)
        assert found.p_against(high) == pytest.approx(alpha, rel=1e-4)
        assert found.p_against(high + found.error / 10) < alpha < found.p_against(high - found.error / 10)


@given(experiments(least_cases=9), st.sampled_from([0.05, 0.3]))
def test_what_holds_at_all_looks_is_wider(pairs: list[Pair], smallest: float) -> None:
    (low, high), (lower, higher) = (known(COST, pairs, each).interval(0.95) for each in (None, smallest))
    assert lower <= low <= high <= higher


def test_few_clusters_show_nothing() -> None:
    assert effect(SCORE, pairs_of([[-1.0] * 50])) is None
    assert effect(SCORE, []) is None
    five, six = (known(SCORE, pairs_of([[-1.0] * 50] * count)) for count in (5, 6))
    assert (five.p_value, six.p_value) == (0.0625, 0.03125)
    assert five.interval(0.95) == (-1, 1)
    assert six.interval(0.95)[1] < -0.5
    assert known(COST, pairs_of([[0.5] * 9] * 5)).interval(0.95) == (-math.inf, math.inf)


def test_very_many_clusters_are_counted_without_underflow() -> None:
    found = known(SCORE, pairs_of([[0.5 + case % 2 / 64] for case in range(3000)]), 0.1)
    assert 0 < found.p_value < 1e-200
    assert found.interval(0.95) == pytest.approx((0.507, 0.508), abs=0.001)


def test_agreement_of_few_pairs_is_not_certainty() -> None:
    found = known(SCORE, pairs_of([[0.0]] * 20))
    low, high = found.interval(0.95)
    # The rule of three for 20 pairs: 0.15.
    assert found.p_value == 1
    assert [-low, high] == pytest.approx([0.107, 0.107], abs=0.001)
    assert known(SCORE, pairs_of([[0.0] * 9] * 20)).error == pytest.approx(found.error / 3)
    assert known(SCORE, pairs_of([[0.01]] * 20)).error < found.error / 50


def test_ratios_are_relative_changes_and_need_values_above_zero() -> None:
    costs = [Pair(str(case), str(case), 1, 2.0 + case, (2.0 + case) * 1.25) for case in range(8)]
    free = [Pair("free", "free", 1, 0.0, 0.0), Pair("free", "free", 2, 1.0, 0.0), Pair("free", "free", 3, -1.0, 1.0)]
    found = known(COST, [*costs, *free])
    assert (found.clusters, found.pairs) == (8, 8)
    assert found.natural(found.estimate) == pytest.approx(0.25)
    assert found.margin == pytest.approx(math.log(1.1))
    assert known(COST, costs, 0.2).smallest == pytest.approx(math.log(1.2))
    assert (known(SCORE, costs).natural(0.3), known(SCORE, costs).margin) == (0.3, 0.1)
    assert effect(COST, free) is None
    assert found.natural(1e9) == found.natural(math.inf) == math.inf


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=30), st.sampled_from([0, 0.5, 0.9, 0.95, 1]))
def test_quantiles_are_numpys(values: list[float], share: float) -> None:
    assert quantile(values, share) == pytest.approx(float(np.quantile(values, share)))


def test_quantile_of_pairs_has_the_error_of_a_bootstrap_of_clusters() -> None:
    chance = np.random.default_rng(3)
    size = chance.normal(0, 0.5, (40, 1))
    base, head = (np.exp(size + chance.normal(0, 0.3, (40, 5))) for _ in range(2))
    pairs = [Pair(str(c), str(c), t, float(base[c, t]), 1.2 * float(head[c, t])) for c in range(40) for t in range(5)]
    found = known(P95, pairs)
    assert found.estimate == pytest.approx(math.log(1.2 * np.quantile(head, 0.95) / np.quantile(base, 0.95)))
    drawn = chance.integers(0, 40, (4000, 40))
    tails = [np.quantile(each[drawn].reshape(4000, -1), 0.95, axis=1) for each in (head, base)]
    assert found.error == pytest.approx(float(np.std(np.log(tails[0] / tails[1]))), rel=0.1)
    assert found.method == "bootstrap of 40 clusters, t at 39 degrees of freedom"
    assert effect(P95, pairs, seed=1) == effect(P95, pairs, seed=1) != effect(P95, pairs, seed=2)


@pytest.mark.parametrize(
    ("metric", "estimate", "equivalent", "not_worse"),
    [
        (SCORE, 0.0, True, True),
        (SCORE, 0.09, False, True),
        (SCORE, 0.16, False, True),
        (SCORE, -0.16, False, False),
        (SCORE, 0.3, False, True),
        (SCORE, -0.05, True, True),
        (SCORE, -0.3, False, False),
        (Metric("errors", higher_is_better=False, margin=0.1), 0.3, False, False),
        (Metric("errors", higher_is_better=False, margin=0.1), -0.3, False, True),
    ],
)
def test_p_values_against_the_margin(metric: Metric, estimate: float, *, equivalent: bool, not_worse: bool) -> None:
    found = Effect(metric, estimate, 0.02, 99, 100, 100, 500, "t")
    assert found.p_equivalent is not None
    assert found.p_not_worse is not None
    assert (found.p_equivalent <= 0.05, found.p_not_worse <= 0.05) == (equivalent, not_worse)


def test_p_values_against_the_margin_are_twice_those_of_one_side() -> None:
    found = Effect(SCORE, 0.04, 0.02, 99, 100, 100, 500, "t")
    assert found.p_equivalent == pytest.approx(2 * stats.t.sf(3, 99))
    assert found.p_not_worse == pytest.approx(2 * stats.t.sf(7, 99))
    assert Effect(Metric("score"), 0.04, 0.02, 99, 100, 100, 500, "t").p_equivalent is None
    assert Effect(Metric("score"), 0.04, 0.02, 99, 100, 100, 500, "t").p_not_worse is None


@pytest.mark.parametrize("smallest", [0.0, -0.1])
def test_looks_need_an_effect_to_find(smallest: float) -> None:
    with pytest.raises(ValueError, match="cannot be found"):
        effect(SCORE, pairs_of([[0.1]] * 5), smallest=smallest)
