"""Student's t, for intervals and their probabilities. Pure.

Degrees of freedom may be fractions: those of a moderated t are. The tests compare with SciPy.
"""

from __future__ import annotations

import math
from functools import cache

from analysis.statistics.beta import incomplete, inverse

CONFIDENCE = 0.95


def central_probability(t: float, degrees: float) -> float:
    """P(-t <= T <= t) for Student's T with `degrees` degrees of freedom."""
    return incomplete(t * t / (degrees + t * t), 0.5, degrees / 2)


@cache
def quantile(degrees: float, confidence: float = CONFIDENCE) -> float:
    """The t whose central interval holds `confidence`: half the width of a 95 % interval in standard errors."""
    high = 1.0
    while central_probability(high, degrees) < confidence:
        high *= 2
    return inverse(lambda t: central_probability(t, degrees), confidence, 0.0, high)


def p_value(t: float, degrees: float) -> float:
    """The probability of a t at least as far from 0, on either side."""
    if math.isinf(t):
        return 0.0
    return incomplete(degrees / (degrees + t * t), degrees / 2, 0.5)
