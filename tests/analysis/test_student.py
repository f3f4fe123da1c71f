"""Student's t distribution, compared with scipy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agentv_ci.analysis.statistics.student import critical, two_sided_p, upper_tail

DEGREES = st.floats(0.6, 5_000)


@given(st.floats(-60, 60), DEGREES)
def test_tails_are_scipys(t: float, degrees: float) -> None:
    assert two_sided_p(t, degrees) == pytest.approx(2 * stats.t.sf(abs(t), degrees), rel=1e-9, abs=1e-13)
    assert upper_tail(t, degrees) == pytest.approx(stats.t.sf(t, degrees), rel=1e-9, abs=1e-13)


def test_tails_at_the_ends() -> None:
    assert two_sided_p(0, 3) == 1
    assert two_sided_p(math.inf, 3) == two_sided_p(-math.inf, 3) == 0
    assert (upper_tail(math.inf, 3), upper_tail(-math.inf, 3)) == (0, 1)


@given(st.sampled_from([0.5, 0.1, 0.05, 0.01, 1e-4, 1e-20]), st.floats(3, 5_000))
def test_critical_values_are_scipys(alpha: float, degrees: float) -> None:
    assert critical(alpha, degrees) == pytest.approx(stats.t.isf(alpha / 2, degrees), rel=1e-7)
