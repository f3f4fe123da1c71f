"""Bounds for all looks, compared with integrals over the normal distribution and Robbins' formula."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agentv_ci.analysis.statistics import sequence
from agentv_ci.analysis.statistics.sequence import boundary, normal_z, p_value

DRIFTS = st.floats(0.05, 8)
Z = np.linspace(-60, 60, 6001)


def log_fortune(z: float, drift: float) -> float:
    return sequence._log_fortune(abs(z), drift)  # noqa: SLF001  # p_value caps it at 1


def log_mean(of: Callable[[float], float]) -> float:
    """Return the logarithm of the mean over a normal distribution of a function, from its logarithm."""
    return math.log(np.trapezoid([math.exp(of(z) + stats.norm.logpdf(z)) for z in Z.tolist()], Z))


@pytest.mark.parametrize("drift", [0.1, 1, 2.7, 5])
def test_the_bet_is_fair(drift: float) -> None:
    assert log_mean(lambda z: log_fortune(z, drift)) == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(("z", "share"), [(0.5, 0.25), (-2, 0.5), (3, 0.8)])
def test_the_bet_stays_fair_after_any_look(z: float, share: float) -> None:
    """With no change, a Brownian motion is z √share after a share of the time, and goes on from there."""

    def later(step: float) -> float:
        return log_fortune(z * math.sqrt(share) + step * math.sqrt(1 - share), 3)

    assert log_mean(later) == pytest.approx(log_fortune(z, 3 * math.sqrt(share)), abs=1e-4)


@given(DRIFTS, st.sampled_from([0.5, 0.05, 0.01, 1e-6]))
def test_boundary_is_where_the_p_value_is_alpha(drift: float, alpha: float) -> None:
    reach = boundary(alpha, drift)
    assert p_value(reach, drift) == p_value(-reach, drift) == pytest.approx(alpha, rel=1e-6)
    assert reach > stats.norm.isf(alpha / 2)


@given(DRIFTS, st.floats(0, 30), st.floats(0, 5))
def test_p_value_falls_with_the_distance(drift: float, z: float, more: float) -> None:
    assert 0 <= p_value(z + more, drift) <= p_value(z, drift) <= p_value(0, drift) == 1


@given(DRIFTS, st.sampled_from([0.05, 0.01]))
def test_what_is_not_on_the_plan_is_robbins_mixture(drift: float, alpha: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequence, "ON_PLAN", 1e-15)
        boundary.cache_clear()
        reach = boundary(alpha, drift)
    boundary.cache_clear()
    spread = drift**2
    robbins = math.sqrt((1 + 1 / spread) * (math.log1p(spread) + 2 * math.log(1 / alpha)))
    assert reach == pytest.approx(robbins, rel=1e-6)


def test_boundary_at_the_effect_of_the_plan() -> None:
    """The least that any look needs: a little more than the √(2 ln(2 / alpha)) of a bet on this effect alone."""
    least = min(boundary(0.05, drift / 10) for drift in range(5, 60))
    assert math.sqrt(2 * math.log(2 / 0.05)) == pytest.approx(2.716, abs=0.001)
    assert least == pytest.approx(2.760, abs=0.001)


@given(st.floats(1e-200, 1))
def test_normal_z_is_scipys(p_two_sided: float) -> None:
    assert normal_z(p_two_sided) == pytest.approx(stats.norm.isf(p_two_sided / 2), rel=1e-8, abs=1e-12)
