"""Bounds that hold at all looks at once: however often one looks, and whenever one stops.

An e-process is the fortune of a bet against "the change is this large". If it is, the fortune ever
grows 1 / alpha times with a probability of at most alpha (J. Ville, 1939), so a change may be
excluded as soon as that happens. The changes that are not excluded are a confidence sequence. The
bet is a mixture: most of it on the effect that the plan is made to find, up or down, the rest
spread over all effects, so that smaller and larger ones are found, too. H. Robbins (1970),
Statistical methods related to the law of the iterated logarithm, Annals of Mathematical Statistics
41, for such mixtures; I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas (2024),
Time-uniform central limit theory and asymptotic confidence sequences, Annals of Statistics 52, for
their use with estimated errors.

The estimates of looks at growing samples behave like a Brownian motion whose time is the
information, 1 / error²: D. O. Scharfstein, A. A. Tsiatis and J. M. Robins (1997), Semiparametric
efficiency and its implication on the design and analysis of group-sequential studies, JASA 92. So a
look may follow any number of further trials or cases.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

ON_PLAN = 0.8
"""The part of the bet that is on the effect of the plan."""
CLOSE = 1e-10
LEAST_P = 1e-300


def p_value(z: float, drift: float) -> float:
    """Return the p-value, at all looks at once, of what lies z standard errors from the estimate.

    `drift`: the effect that the plan is made to find, in standard errors.
    """
    return math.exp(-max(0.0, _log_fortune(abs(z), drift)))


@lru_cache(maxsize=1024)
def boundary(alpha: float, drift: float) -> float:
    """Return how many standard errors from the estimate a value must lie to be excluded."""
    low, high = 0.0, 1.0
    while p_value(high, drift) > alpha:
        low, high = high, high * 2
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        if p_value(middle, drift) > alpha:
            low = middle
        else:
            high = middle
    return high


def alpha_at(alpha: float, drift: float) -> float:
    """Return the level at which a single look decides, so that all looks together have this one."""
    return math.erfc(boundary(alpha, drift) / math.sqrt(2))


def normal_z(p_two_sided: float) -> float:
    """Return how many standard deviations from the mean have this probability.

    The distribution is normal.
    """
    return -NormalDist().inv_cdf(max(p_two_sided, LEAST_P) / 2)


def _log_fortune(z: float, drift: float) -> float:
    reach, spread = drift * z, drift * drift
    # The logarithm of cosh(reach), without overflow.
    cosh = reach + math.log1p(math.exp(-2 * reach)) - math.log(2)
    on_plan = math.log(ON_PLAN) + cosh - spread / 2
    spread_out = math.log(1 - ON_PLAN) + z * z * spread / (1 + spread) / 2 - math.log1p(spread) / 2
    larger, smaller = max(on_plan, spread_out), min(on_plan, spread_out)
    return larger + math.log1p(math.exp(smaller - larger))
