"""Verdicts on metrics, compared with statsmodels, and what must hold of any of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from agentv_ci.analysis.statistics.claims import claim, claims, discoveries
from agentv_ci.analysis.statistics.effects import Effect, Metric
from tests.analysis.builders import COST, SCORE, estimated

ERRORS = Metric("errors", higher_is_better=False, margin=0.1)
PLAIN = Metric("pass")
P_VALUES = st.lists(st.floats(0, 1), max_size=12)


@st.composite
def effects(draw: st.DrawFn, metrics: tuple[Metric, ...] = (SCORE, PLAIN, COST, ERRORS)) -> list[Effect]:
    metric, estimate, error = st.sampled_from(metrics), st.floats(-0.3, 0.3), st.floats(0.005, 0.1)
    several = draw(st.lists(st.tuples(estimate, error, metric), min_size=1, max_size=6))
    smallest = draw(st.sampled_from([None, 0.1]))
    return [estimated(*each, smallest) for each in several]


@pytest.mark.parametrize(
    ("metric", "estimate", "error", "verdict"),
    [
        (SCORE, -0.2, 0.05, "worse"),
        (SCORE, 0.2, 0.05, "better"),
        (SCORE, 0.0, 0.04, "equivalent"),
        (SCORE, -0.05, 0.02, "equivalent"),
        (SCORE, 0.05, 0.04, "not worse"),
        (SCORE, -0.05, 0.04, "undecided"),
        (PLAIN, 0.0, 0.0001, "undecided"),
        (PLAIN, -0.05, 0.02, "worse"),
        (ERRORS, 0.2, 0.05, "worse"),
        (ERRORS, -0.2, 0.05, "better"),
        (ERRORS, -0.05, 0.04, "not worse"),
        (ERRORS, 0.05, 0.04, "undecided"),
        (COST, 0.2, 0.05, "worse"),
        (COST, 0.03, 0.03, "equivalent"),
        (COST, 0.03, 0.04, "undecided"),
    ],
)
def test_verdict_follows_from_the_interval(metric: Metric, estimate: float, error: float, verdict: str) -> None:
    found = claim(estimated(estimate, error, metric), 0.95)
    assert found.verdict == verdict
    assert (found.low, found.high) == found.effect.interval(0.95)


@given(effects((PLAIN,)))
def test_without_margins_the_level_is_holms(several: list[Effect]) -> None:
    rejected = multipletests([each.p_value for each in several], 0.05, method="holm")[0]
    assert [each.verdict != "undecided" for each in claims(several, 0.05)] == rejected.tolist()


@given(effects())
def test_level_lies_between_bonferronis_and_that_of_one_metric(several: list[Effect]) -> None:
    for found, alone in zip(claims(several, 0.05), several, strict=True):
        assert 0.95 <= found.confidence <= 1 - 0.05 / len(several) + 1e-12
        assert found == claim(alone, found.confidence)


@given(effects())
def test_verdicts_need_the_p_values_that_belong_to_them(several: list[Effect]) -> None:
    for found in claims(several, 0.05):
        level, of = 1 - found.confidence + 1e-9, found.effect
        needed = {
            "worse": of.p_value,
            "better": of.p_value,
            "equivalent": of.p_equivalent,
            "not worse": of.p_not_worse,
            "undecided": 0,
        }[found.verdict]
        assert needed is not None
        assert needed <= level


def test_a_metric_shares_its_level_until_nothing_is_left_to_claim_about_it() -> None:
    clear, close = estimated(-0.2, 0.01, PLAIN), estimated(0.021, 0.01, PLAIN)
    assert [each.verdict for each in claims([clear, close], 0.05)] == ["worse", "better"]
    assert [each.confidence for each in claims([clear, close], 0.05)] == [0.975, 0.95]
    with_margin = estimated(-0.2, 0.01, SCORE)
    assert [each.verdict for each in claims([with_margin, close], 0.05)] == ["worse", "undecided"]
    within = estimated(-0.05, 0.01, SCORE)
    assert [each.verdict for each in claims([within, close], 0.05)] == ["equivalent", "better"]
    assert claims([], 0.05) == ()


@given(effects(), st.permutations(range(6)))
def test_order_of_metrics_does_not_matter(several: list[Effect], order: list[int]) -> None:
    order = [each for each in order if each < len(several)]
    found = claims(several, 0.05)
    assert claims([several[each] for each in order], 0.05) == tuple(found[each] for each in order)


@given(P_VALUES, st.sampled_from([0.05, 0.1, 0.5]))
def test_discoveries_are_those_of_benjamini_and_hochberg(p_values: list[float], rate: float) -> None:
    expected = multipletests(p_values, rate, method="fdr_bh")[0].tolist() if p_values else []
    assert list(discoveries(p_values, rate)) == expected
