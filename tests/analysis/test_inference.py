"""Intervals, tests and chances, compared with scipy, published tables and enumeration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations, product
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from agentv_ci.analysis.statistics.inference import (
    EXACT_UP_TO,
    change_interval,
    detectable_mean_drop,
    mcnemar,
    pass_at,
    pass_hat,
    rate_interval,
    smallest_loss,
    wilcoxon,
)

CLOSE = 1e-9
CONFIDENCES = st.sampled_from([0.8, 0.95, 0.99])

Interval = tuple[float, float]


def p_of(differences: Sequence[float]) -> float:
    return wilcoxon(differences)[0]


def trials(passed: int, number: int) -> list[bool]:
    return [True] * passed + [False] * (number - passed)


def wilson(passed: int, number: int, confidence: float) -> Interval:
    interval = stats.binomtest(passed, number).proportion_ci(confidence, method="wilson")
    return interval.low, interval.high


@given(st.integers(1, 1_000), st.floats(0, 1), CONFIDENCES)
def test_interval_of_a_rate_is_wilsons(number: int, share: float, confidence: float) -> None:
    passed = round(share * number)
    low, high = rate_interval(passed, number, confidence)
    assert (low, high) == pytest.approx(wilson(passed, number, confidence), abs=CLOSE)
    assert ((low == 0.0), (high == 1.0)) == ((passed == 0), (passed == number))
    assert rate_interval(0, 0, confidence) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("head", "base", "published"),
    [
        # Newcombe (1998), Interval estimation for the difference between independent proportions, table II, method 10.
        ((56, 70), (48, 80), (0.0524, 0.3339)),
        ((9, 10), (3, 10), (0.1705, 0.8090)),
        ((6, 7), (2, 7), (0.0582, 0.8062)),
        ((5, 56), (0, 29), (-0.0381, 0.1926)),
        ((0, 10), (0, 20), (-0.1611, 0.2775)),
        ((0, 10), (0, 10), (-0.2775, 0.2775)),
        ((10, 10), (0, 20), (0.6791, 1.0)),
        ((10, 10), (0, 10), (0.6075, 1.0)),
    ],
)
def test_interval_of_a_change_is_the_published_one(
    head: tuple[int, int], base: tuple[int, int], published: Interval
) -> None:
    assert change_interval(trials(*base), trials(*head), 0.95, paired=False) == pytest.approx(published, abs=5e-5)


def newcombe(table: tuple[int, int, int, int], confidence: float) -> Interval:
    """Method 10 for pairs in the letters of the paper: a both, b only the first, c only the second, d neither."""
    a, b, c, d = table
    n = a + b + c + d
    p2, p3 = (a + b) / n, (a + c) / n
    (l2, u2), (l3, u3) = wilson(a + b, n, confidence), wilson(a + c, n, confidence)
    numerator = float(a * d - b * c)
    if numerator > n / 2:
        numerator -= n / 2
    elif numerator >= 0:
        numerator = 0.0
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    phi = numerator / math.sqrt(margins) if margins else 0.0
    theta = p2 - p3
    delta = math.sqrt(max(0.0, (p2 - l2) ** 2 - 2 * phi * (p2 - l2) * (u3 - p3) + (u3 - p3) ** 2))
    epsilon = math.sqrt(max(0.0, (u2 - p2) ** 2 - 2 * phi * (u2 - p2) * (p3 - l3) + (p3 - l3) ** 2))
    return max(-1.0, theta - delta), min(1.0, theta + epsilon)


@given(st.tuples(*[st.integers(0, 30)] * 4).filter(any), CONFIDENCES)
def test_interval_of_a_paired_change_is_newcombes(table: tuple[int, int, int, int], confidence: float) -> None:
    # The head is the first side of the paper.
    both, first, second, neither = table
    head = trials(both + first, sum(table))
    base = [*trials(both, both + first), *trials(second, second + neither)]
    low, high = change_interval(base, head, confidence, paired=True)
    # The square root of nearly nothing doubles the digits that rounding takes.
    assert (low, high) == pytest.approx(newcombe(table, confidence), abs=1e-6)
    assert low <= round((sum(head) - sum(base)) / len(base), 12) <= high
    assert change_interval(head, base, confidence, paired=True) == pytest.approx((-high, -low), abs=1e-11)


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_is_the_exact_test(worse: int, better: int) -> None:
    expected = stats.binomtest(worse, worse + better).pvalue if worse + better else 1.0
    assert mcnemar(worse, better) == pytest.approx(expected, abs=CLOSE)
    assert mcnemar(worse, better) == mcnemar(better, worse)


@pytest.mark.parametrize(
    ("worse", "better"), [(50_000, 50_000), (50_500, 49_500), (49_500, 50_500), (0, 100_000), (99_000, 1_000)]
)
def test_mcnemar_of_very_many_cases_is_accurate(worse: int, better: int) -> None:
    assert mcnemar(worse, better) == pytest.approx(stats.binomtest(worse, worse + better).pvalue, abs=1e-8)


@settings(max_examples=50)
@given(st.integers(0, 40), st.integers(0, 120), st.sampled_from([0.2, 0.05, 0.01]))
def test_smallest_loss_is_the_first_that_is_significant(better: int, most: int, alpha: float) -> None:
    shown = (worse for worse in range(better + 1, most + 1) if stats.binomtest(worse, worse + better).pvalue <= alpha)
    assert smallest_loss(better, most, alpha) == next(shown, None)


@settings(max_examples=50)
@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=EXACT_UP_TO, unique=True))
def test_wilcoxon_without_ties_is_exact(sizes: list[int]) -> None:
    differences = [size if index % 3 else -size for index, size in enumerate(sizes)]
    assert p_of(differences) == pytest.approx(stats.wilcoxon(differences, method="exact").pvalue, abs=CLOSE)


def enumerated(differences: Sequence[float]) -> float:
    """The share of all sign patterns that are at least as uneven, by mean ranks."""
    changed = [each for each in differences if each]
    ranks: list[float] = stats.rankdata([abs(each) for each in changed]).tolist()
    middle = sum(ranks) / 2

    def uneven(signs: Sequence[bool]) -> float:
        return abs(sum(rank for rank, is_up in zip(ranks, signs, strict=True) if is_up) - middle)

    seen = uneven([each > 0 for each in changed])
    patterns = [uneven(signs) >= seen for signs in product((False, True), repeat=len(changed))]
    return sum(patterns) / len(patterns)


@settings(max_examples=50)
@given(st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0]), max_size=11))
def test_wilcoxon_with_ties_and_zeros_is_exact(differences: list[float]) -> None:
    assert p_of(differences) == pytest.approx(enumerated(differences), abs=CLOSE)
    assert p_of([each * -4.0 for each in reversed(differences)]) == p_of(differences)


@pytest.mark.parametrize("size", [2 * EXACT_UP_TO, 5_000])
@pytest.mark.parametrize("digits", [1, 12])
@pytest.mark.parametrize("shift", [0.0, -0.05, 0.3])
def test_wilcoxon_of_many_is_normal_with_both_corrections(size: int, digits: int, shift: float) -> None:
    spread = NormalDist(shift, 0.4)
    differences = [round(spread.inv_cdf((index + 0.5) / size), digits) for index in range(size)]
    changed = [each for each in differences if each]
    expected = stats.wilcoxon(changed, zero_method="wilcox", correction=True, method="approx").pvalue
    assert len(changed) > EXACT_UP_TO
    assert p_of(differences) == pytest.approx(expected, abs=CLOSE)


def test_wilcoxon_is_exact_up_to_the_limit() -> None:
    differences = [number if number % 3 else -number for number in range(1, EXACT_UP_TO + 2)]
    last, first = differences[:-1], differences
    assert p_of(last) == pytest.approx(stats.wilcoxon(last, method="exact").pvalue, abs=CLOSE)
    assert p_of(first) == pytest.approx(stats.wilcoxon(first, correction=True, method="approx").pvalue, abs=CLOSE)


@pytest.mark.parametrize("sign", [1, -1])
def test_wilcoxon_reports_the_direction_of_the_ranks_and_not_of_the_mean(sign: int) -> None:
    many_small = [sign * (0.002 + number / 10_000) for number in range(19)]
    p_value, falls = wilcoxon([*many_small, -0.2 * sign])
    assert (p_value < 0.01, falls) == (True, sign < 0)
    assert wilcoxon([0.0]) == wilcoxon([]) == (1.0, False)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), CONFIDENCES, st.sampled_from([0.5, 0.8, 0.9]))
def test_detectable_drop_follows_the_formula(differences: list[float], confidence: float, power: float) -> None:
    error = stats.sem(differences)
    expected = (stats.norm.ppf((1 + confidence) / 2) + stats.norm.ppf(power)) * error
    assert detectable_mean_drop(differences, confidence, power) == pytest.approx(float(expected), abs=CLOSE)


def test_detectable_drop_needs_two_differences() -> None:
    found = [detectable_mean_drop(each, 0.95, 0.8) for each in ([], [0.5], [0.1] * 7)]
    assert found == [None, None, 0.0]


def drawn(k: int, passed: int, number: int, is_one: Callable[[Sequence[bool]], bool]) -> float:
    draws = list(combinations(trials(passed, number), k))
    return sum(map(is_one, draws)) / len(draws)


@pytest.mark.parametrize("number", range(1, 8))
def test_chances_of_one_and_of_all_are_those_of_all_draws(number: int) -> None:
    for passed, k in product(range(number + 1), range(1, number + 1)):
        assert pass_at(k, passed, number) == pytest.approx(drawn(k, passed, number, any), abs=1e-11)
        assert pass_hat(k, passed, number) == pytest.approx(drawn(k, passed, number, all), abs=1e-11)
