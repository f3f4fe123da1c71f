"""Student's t distribution, for any positive number of degrees of freedom.

The tail is a regularized incomplete beta function, computed by its continued fraction: W. J. Lentz
(1976), Generating Bessel functions in Mie scattering calculations using continued fractions,
Applied Optics 15; DLMF 8.17.22.
"""

from __future__ import annotations

import math
from functools import lru_cache

TINY = 1e-300
CLOSE = 1e-15
MOST_TERMS = 10_000
HALVINGS = 200


def two_sided_p(t: float, degrees: float) -> float:
    """Return the probability of a value at least as far from 0 as t."""
    if math.isinf(t):
        return 0.0
    return _incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5)


def upper_tail(t: float, degrees: float) -> float:
    """Return the probability of a value above t."""
    half = two_sided_p(t, degrees) / 2
    return half if t >= 0 else 1 - half


@lru_cache(maxsize=1024)
def critical(alpha: float, degrees: float) -> float:
    """Return how far from 0 a value lies that has this two-sided p-value, which is above 0."""
    low, high = 0.0, 1.0
    while two_sided_p(high, degrees) > alpha:
        low, high = high, high * 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if two_sided_p(middle, degrees) > alpha:
            low = middle
        else:
            high = middle
    return high


def _incomplete_beta(x: float, a: float, b: float) -> float:
    if x in (0.0, 1.0):
        return x
    # The fraction converges quickly only below the mean of the distribution.
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    scale = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    return math.exp(scale) / (a * _continued_fraction(x, a, b))


def _continued_fraction(x: float, a: float, b: float) -> float:
    value, c, d = 1.0, 1.0, 0.0
    for term in range(1, MOST_TERMS):
        m = term // 2
        if term % 2:
            numerator = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            numerator = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / ((1 + numerator * d) or TINY)
        c = (1 + numerator / c) or TINY
        value *= c * d
        if abs(c * d - 1) < CLOSE:
            break
    return value
