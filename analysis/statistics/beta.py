"""The beta distribution, and what rests on it: the interval of a share, and the quantile of F. Pure.

The regularised incomplete beta function is computed by its continued fraction (Numerical Recipes, 6.4), so no numerical
library is needed. The tests compare all of it with SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

_TERMS_MAX = 10_000
_PRECISION = 1e-15
_TINY = 1e-300
_BISECTIONS = 200


def incomplete(x: float, a: float, b: float) -> float:
    """P(X <= x) for X of the beta distribution (a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )  # fmt: skip
    # The fraction converges fast on one side of the mean, and its mirror image on the other.
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction, by Lentz's method."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _TERMS_MAX):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def inverse(probability: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """Where a rising function reaches `wanted`, between two places, by bisection."""
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if probability(middle) < wanted else (low, middle)
    return (low + high) / 2


def share_interval(found: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of a share of which `found` in `of` were seen (Clopper and Pearson)."""
    tail = (1 - confidence) / 2
    low = inverse(lambda x: incomplete(x, found, of - found + 1), tail, 0.0, 1.0) if found else 0.0
    high = inverse(lambda x: incomplete(x, found + 1, of - found), 1 - tail, 0.0, 1.0) if found < of else 1.0
    return low, high


@cache
def f_quantile(probability: float, above: float, below: float) -> float:
    """The quantile of F with so many degrees of freedom above and below the line."""
    # X = above F / (above F + below) is of the beta distribution.
    x = inverse(lambda value: incomplete(value, above / 2, below / 2), probability, 0.0, 1.0)
    return below * x / (above * (1 - x))
