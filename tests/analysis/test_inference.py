"""What few trials say of how often something passes: against scipy, and against counting out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations, product
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from agentv_ci.analysis.inference import (
    EXACT_UP_TO,
    change_interval,
    detectable_mean_drop,
    mcnemar,
    pass_at,
    pass_hat,
    quantile,
    rate_interval,
    smallest_loss,
    wilcoxon,
)

CLOSE = 1e-9
CONFIDENCES = (0.8, 0.95, 0.99)

confidences = st.sampled_from(CONFIDENCES)
answers = st.lists(st.booleans(), min_size=1, max_size=12)
pairs = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12)


def p_of(differences: Sequence[float]) -> float:
    return wilcoxon(differences)[0]


def rates(passed: int, trials: int) -> list[bool]:
    return [True] * passed + [False] * (trials - passed)


def test_quantile_is_that_of_tables() -> None:
    assert quantile(0.95) == pytest.approx(1.959963985, abs=1e-9)
    assert quantile(0.99) == pytest.approx(2.575829304, abs=1e-9)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("trials", [1, 2, 3, 5, 10, 81, 263, 100_000])
def test_interval_of_a_rate_is_wilsons(trials: int, confidence: float) -> None:
    for passed in sorted({0, 1, trials // 3, trials // 2, trials - 1, trials}):
        interval = stats.binomtest(passed, trials).proportion_ci(confidence, method="wilson")
        found = rate_interval(passed, trials, confidence)
        assert found == pytest.approx((interval.low, interval.high), abs=CLOSE), (passed, trials)


def test_interval_of_a_rate_is_that_of_the_published_examples() -> None:
    # Newcombe (1998), Two-sided confidence intervals for the single proportion, table I, method 3.
    examples = {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }
    for (passed, trials), published in examples.items():
        assert rate_interval(passed, trials, 0.95) == pytest.approx(published, abs=5e-5)


def test_nothing_is_known_of_a_rate_without_trials() -> None:
    assert rate_interval(0, 0, 0.95) == (0.0, 1.0)


@given(st.integers(1, 100_000), st.floats(0, 1), st.floats(0.5, 0.9999))
def test_interval_of_a_rate_holds_the_rate_and_is_the_other_way_round_for_its_misses(
    trials: int, share: float, confidence: float
) -> None:
    passed = round(share * trials)
    low, high = rate_interval(passed, trials, confidence)
    assert 0.0 <= low <= round(passed / trials, 12) <= high <= 1.0
    assert (low == 0.0) == (passed == 0)
    assert (high == 1.0) == (passed == trials)
    assert rate_interval(trials - passed, trials, confidence) == pytest.approx((1 - high, 1 - low), abs=CLOSE)


@given(st.integers(0, 20), st.integers(1, 20), confidences)
def test_interval_of_a_rate_is_narrower_with_more_trials_and_with_less_confidence(
    passed: int, missed: int, confidence: float
) -> None:
    def width(times: int, confidence: float) -> float:
        low, high = rate_interval(passed * times, (passed + missed) * times, confidence)
        return high - low

    assert width(4, confidence) < width(1, confidence)
    assert width(1, 0.7) < width(1, confidence)


@pytest.mark.parametrize(
    ("head", "base", "published"),
    [
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
def test_interval_of_a_change_is_that_of_the_published_examples(
    head: tuple[int, int], base: tuple[int, int], published: tuple[float, float]
) -> None:
    # Newcombe (1998), Interval estimation for the difference between independent proportions, table II, method 10.
    assert change_interval(rates(*base), rates(*head), 0.95, paired=False) == pytest.approx(published, abs=5e-5)


def wilson(passed: int, trials: int, confidence: float) -> tuple[float, float]:
    """The two rates that lie just as far from what was seen as the confidence allows: roots of a quadratic."""
    z = stats.norm.ppf((1 + confidence) / 2)
    a, b, c = trials + z * z, -(2 * passed + z * z), passed * passed / trials
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def newcombe(table: tuple[int, int, int, int], confidence: float) -> tuple[float, float]:
    """Method 10 for pairs, in the paper's own letters: a both, b only the first, c only the second, d neither."""
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
    return theta - delta, theta + epsilon


def sides(table: tuple[int, int, int, int]) -> tuple[list[bool], list[bool]]:
    """Base and head: `head` is the paper's first side."""
    both, first, second, neither = table
    head = [True] * (both + first) + [False] * (second + neither)
    base = [True] * both + [False] * first + [True] * second + [False] * neither
    return base, head


@given(st.tuples(*[st.integers(0, 30)] * 4).filter(any), confidences)
def test_interval_of_a_paired_change_is_newcombes(table: tuple[int, int, int, int], confidence: float) -> None:
    low, high = newcombe(table, confidence)
    expected = (max(-1.0, low), min(1.0, high))
    # The square root of nearly nothing doubles the digits that rounding takes.
    assert change_interval(*sides(table), confidence, paired=True) == pytest.approx(expected, abs=1e-6)


@given(answers, answers, confidences)
def test_interval_of_a_change_holds_the_change_and_is_mirrored_when_sides_are_swapped(
    base: list[bool], head: list[bool], confidence: float
) -> None:
    change = sum(head) / len(head) - sum(base) / len(base)
    low, high = change_interval(base, head, confidence, paired=False)
    assert -1.0 <= low <= round(change, 12) <= high <= 1.0
    assert change_interval(head, base, confidence, paired=False) == pytest.approx((-high, -low), abs=1e-11)


@given(pairs, confidences)
def test_the_same_holds_for_pairs(sampled: list[tuple[bool, bool]], confidence: float) -> None:
    base, head = [one for one, _ in sampled], [other for _, other in sampled]
    change = (sum(head) - sum(base)) / len(sampled)
    low, high = change_interval(base, head, confidence, paired=True)
    assert -1.0 <= low <= round(change, 12) <= high <= 1.0
    assert change_interval(head, base, confidence, paired=True) == pytest.approx((-high, -low), abs=1e-11)


@given(pairs, confidences)
def test_order_of_pairs_does_not_matter(sampled: list[tuple[bool, bool]], confidence: float) -> None:
    backwards = sampled[::-1]
    one, other = (
        change_interval([base for base, _ in each], [head for _, head in each], confidence, paired=True)
        for each in (sampled, backwards)
    )
    assert one == other


@given(answers, answers, confidences)
def test_interval_of_a_change_is_narrower_with_more_trials(
    base: list[bool], head: list[bool], confidence: float
) -> None:
    low, high = change_interval(base, head, confidence, paired=False)
    closer_low, closer_high = change_interval(base * 4, head * 4, confidence, paired=False)
    assert closer_high - closer_low < high - low


@given(st.integers(0, 12), st.integers(0, 12), st.integers(1, 12), confidences)
def test_pairs_that_tell_nothing_of_each_other_are_like_independent_trials(
    passed: int, other: int, trials: int, confidence: float
) -> None:
    # Every trial of one side meets every one of the other: nothing in common, by construction.
    one, two = rates(min(passed, trials), trials), rates(min(other, trials), trials)
    base, head = ([pair[side] for pair in product(one, two)] for side in (0, 1))
    assert change_interval(base, head, confidence, paired=True) == change_interval(base, head, confidence, paired=False)


def test_what_pairs_have_in_common_does_not_widen_the_interval() -> None:
    base, head = sides((20, 5, 1, 20))
    paired = change_interval(base, head, 0.95, paired=True)
    independent = change_interval(base, head, 0.95, paired=False)
    assert paired[1] - paired[0] < independent[1] - independent[0]
    assert independent[0] < 0 < paired[0] + 0.05


@given(st.booleans(), st.booleans(), st.integers(1, 50))
def test_change_between_sides_that_never_waver_has_an_interval(one: bool, other: bool, trials: int) -> None:
    low, high = change_interval([one] * trials, [other] * trials, 0.95, paired=True)
    assert low <= other - one <= high
    assert low < high


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_is_the_exact_test(worse: int, better: int) -> None:
    expected = stats.binomtest(worse, worse + better).pvalue if worse + better else 1.0
    assert mcnemar(worse, better) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize(
    ("worse", "better", "p_value"), [(0, 0, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (1, 1, 1.0), (9, 1, 22 / 1024)]
)
def test_mcnemar_by_hand(worse: int, better: int, p_value: float) -> None:
    assert mcnemar(worse, better) == p_value


@pytest.mark.parametrize(
    ("worse", "better"),
    [(50_000, 50_000), (50_500, 49_500), (49_500, 50_500), (100_000, 0), (0, 100_000), (99_000, 1_000)],
)
def test_mcnemar_of_very_many_cases_neither_overflows_nor_is_off(worse: int, better: int) -> None:
    found = mcnemar(worse, better)
    assert 0.0 <= found <= 1.0
    assert found == pytest.approx(stats.binomtest(worse, worse + better).pvalue, abs=1e-8)


@given(st.integers(0, 2000), st.integers(0, 2000))
def test_mcnemar_takes_no_side(worse: int, better: int) -> None:
    assert mcnemar(worse, better) == mcnemar(better, worse)


@settings(max_examples=50)
@given(st.integers(0, 40), st.integers(0, 120), st.sampled_from([0.2, 0.05, 0.01]))
def test_smallest_loss_is_the_first_that_the_test_shows(better: int, most: int, alpha: float) -> None:
    shown = (worse for worse in range(better + 1, most + 1) if stats.binomtest(worse, worse + better).pvalue <= alpha)
    assert smallest_loss(better, most, alpha) == next(shown, None)


def test_six_cases_must_become_worse_when_none_becomes_better() -> None:
    assert [smallest_loss(0, most, 0.05) for most in (0, 5, 6, 100)] == [None, None, 6, 6]


@pytest.mark.parametrize("better", [0, 1_000, 50_000, 99_999])
def test_smallest_loss_of_very_many_cases_is_where_the_test_turns(better: int) -> None:
    loss = smallest_loss(better, 200_000, 0.05)
    assert loss is not None
    assert mcnemar(loss, better) <= 0.05 < mcnemar(loss - 1, better)


@settings(max_examples=50)
@given(
    st.lists(st.integers(1, 10**6), min_size=1, max_size=EXACT_UP_TO, unique=True),
)
def test_wilcoxon_without_ties_is_exact(sizes: list[int]) -> None:
    differences = [size if index % 3 else -size for index, size in enumerate(sizes)]
    expected = stats.wilcoxon(differences, method="exact").pvalue
    assert p_of(differences) == pytest.approx(expected, abs=CLOSE)


def counted_out(differences: Sequence[float]) -> float:
    """The share of all sign patterns that are at least as uneven, by mean ranks."""
    changed = [each for each in differences if each]
    ranks: list[float] = stats.rankdata([abs(each) for each in changed]).tolist()
    middle = sum(ranks) / 2

    def uneven(signs: Sequence[bool]) -> float:
        return abs(sum(rank for rank, is_up in zip(ranks, signs, strict=True) if is_up) - middle)

    seen = uneven([each > 0 for each in changed])
    patterns = [uneven(signs) >= seen for signs in product((False, True), repeat=len(changed))]
    return sum(patterns) / len(patterns)


@settings(max_examples=60)
@given(st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0]), max_size=12))
def test_wilcoxon_with_ties_and_zeros_is_counted_out(differences: list[float]) -> None:
    assert p_of(differences) == pytest.approx(counted_out(differences), abs=CLOSE)


@pytest.mark.parametrize("size", [2 * EXACT_UP_TO, 200, 5_000])
@pytest.mark.parametrize("digits", [1, 12])
@pytest.mark.parametrize("shift", [0.0, -0.05, 0.3])
def test_wilcoxon_of_many_is_normal_with_both_corrections(size: int, digits: int, shift: float) -> None:
    spread = NormalDist(shift, 0.4)
    differences = [round(spread.inv_cdf((index + 0.5) / size), digits) for index in range(size)]
    changed = [each for each in differences if each]
    expected = stats.wilcoxon(changed, zero_method="wilcox", correction=True, method="approx").pvalue
    assert len(changed) > EXACT_UP_TO
    assert p_of(differences) == pytest.approx(expected, abs=CLOSE)


def test_wilcoxon_hardly_jumps_where_it_stops_being_exact() -> None:
    differences = [number if number % 3 else -number for number in range(1, EXACT_UP_TO + 2)]
    last, first = differences[:-1], differences
    assert p_of(last) == pytest.approx(stats.wilcoxon(last, method="exact").pvalue, abs=CLOSE)
    normal = stats.wilcoxon(first, correction=True, method="approx").pvalue
    assert p_of(first) == pytest.approx(normal, abs=CLOSE)
    assert p_of(first) == pytest.approx(stats.wilcoxon(first, method="exact").pvalue, abs=2e-3)


def test_wilcoxon_of_nothing_says_nothing() -> None:
    assert p_of([]) == p_of([0.0, 0.0, -0.0]) == p_of([0.5]) == p_of([0.5, -0.5]) == 1.0


@given(st.lists(st.integers(-4, 4), max_size=70))
def test_wilcoxon_takes_no_side_and_does_not_look_at_the_unit(differences: list[int]) -> None:
    p_value = p_of(differences)
    assert 0.0 <= p_value <= 1.0
    assert p_of([-each for each in differences]) == p_value
    assert p_of([each * 4.0 for each in reversed(differences)]) == p_value


@pytest.mark.parametrize("sign", [(1, 1), (1, -1)])
def test_wilcoxon_of_very_many_cases_is_a_number(sign: tuple[int, int]) -> None:
    differences = [(number % 7 + 1) * sign[number % 2] for number in range(100_000)]
    expected = stats.wilcoxon(differences, zero_method="wilcox", correction=True, method="approx").pvalue
    assert p_of(differences) == pytest.approx(expected, abs=CLOSE)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), confidences, st.sampled_from([0.5, 0.8, 0.9]))
def test_detectable_drop_is_that_of_the_formula(differences: list[float], confidence: float, power: float) -> None:
    error = stats.sem(differences)
    expected = (stats.norm.ppf((1 + confidence) / 2) + stats.norm.ppf(power)) * error
    assert detectable_mean_drop(differences, confidence, power) == pytest.approx(float(expected), abs=CLOSE)


def test_one_difference_has_no_spread() -> None:
    assert detectable_mean_drop([], 0.95, 0.8) is None
    assert detectable_mean_drop([0.5], 0.95, 0.8) is None
    assert detectable_mean_drop([0.1] * 7, 0.95, 0.8) == 0.0


def drawn(k: int, passed: int, trials: int, is_one: Callable[[Sequence[bool]], bool]) -> float:
    draws = list(combinations(rates(passed, trials), k))
    return sum(map(is_one, draws)) / len(draws)


@pytest.mark.parametrize("trials", range(1, 9))
def test_chance_of_one_and_of_all_is_that_of_every_draw(trials: int) -> None:
    for passed, k in product(range(trials + 1), range(1, trials + 1)):
        assert pass_at(k, passed, trials) == pytest.approx(drawn(k, passed, trials, any), abs=1e-11)
        assert pass_hat(k, passed, trials) == pytest.approx(drawn(k, passed, trials, all), abs=1e-11)


@given(st.integers(1, 3000), st.data())
def test_chances_of_many_trials_are_shares_and_meet_where_one_is_drawn(trials: int, data: st.DataObject) -> None:
    passed, k = data.draw(st.integers(0, trials)), data.draw(st.integers(1, trials))
    assert 0.0 <= pass_hat(k, passed, trials) <= round(passed / trials, 12) <= pass_at(k, passed, trials) <= 1.0
    assert pass_at(1, passed, trials) == pytest.approx(passed / trials, abs=1e-11)
    assert pass_hat(1, passed, trials) == pytest.approx(passed / trials, abs=1e-11)
    assert pass_at(k, trials - passed, trials) == pytest.approx(1 - pass_hat(k, passed, trials), abs=1e-11)


def test_wilcoxon_says_which_way_the_ranks_point_and_not_the_mean() -> None:
    many_small_rises = [0.002 + number / 10_000 for number in range(19)]
    p_value, falls = wilcoxon([*many_small_rises, -0.2])
    assert (p_value < 0.01, falls) == (True, False)
    p_value, falls = wilcoxon([*(-each for each in many_small_rises), 0.2])
    assert (p_value < 0.01, falls) == (True, True)
