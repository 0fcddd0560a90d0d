"""The interval of a mean of logarithms, one for each block, and the verdict that it gives. Pure.

The top level is the block, a start of all clusters: what a start does to a cluster, no number of windows averages out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Any

from analysis.statistics.moderated_t import Spread
from analysis.statistics.student_t import p_value, quantile

FASTER, SLOWER, UNDECIDED, ONE_TRY, TOO_FEW = "faster", "slower", "undecided", "one try", "too few"
CHEAPER, DEARER = "cheaper", "dearer"
DECIDED = (FASTER, SLOWER)
EQUAL_WITHIN = 1.05
_EQUAL_CONFIDENCE = 0.9  # two one-sided tests at 5 % each
PRECISION = 0.1


@dataclass(frozen=True, slots=True)
class Interval:
    """The mean of a few logarithms, and how well it is known; one value alone has no spread."""

    n: int
    mean: float
    spread: Spread | None

    def half(self, confidence: float) -> float | None:
        """Half of the interval's width."""
        if self.spread is None:
            return None
        return quantile(self.spread.degrees, confidence) * self._error(self.spread)

    def _error(self, spread: Spread) -> float:
        return math.sqrt(spread.variance / self.n)

    @property
    def p(self) -> float | None:
        """The probability of a mean so far from 0 if the true one were 0."""
        if self.spread is None:
            return None
        error = self._error(self.spread)
        if error == 0:
            return 1.0 if self.mean == 0 else 0.0
        return p_value(self.mean / error, self.spread.degrees)

    @property
    def equal(self) -> bool:
        """Whether both one-sided tests say that the ratio lies within 5 % of 1."""
        half = self.half(_EQUAL_CONFIDENCE)
        return half is not None and abs(self.mean) + half <= math.log(EQUAL_WITHIN)

    def columns(self) -> dict[str, Any]:
        """As columns of a finding: the ratio, its 95 % interval, what that rests on, and the verdict."""
        half = self.half(0.95)
        return {
            "n": self.n,
            "ratio": math.exp(self.mean),
            "low": None if half is None else math.exp(self.mean - half),
            "high": None if half is None else math.exp(self.mean + half),
            "sd": self.spread and math.sqrt(self.spread.variance),
            "degrees": self.spread and self.spread.degrees,
            "p": self.p,
            "verdict": self.verdict,
            "equal": self.equal,
        }

    @property
    def verdict(self) -> str:
        half = self.half(0.95)
        if half is None:
            return ONE_TRY
        if abs(self.mean) > half:
            return FASTER if self.mean > 0 else SLOWER
        return UNDECIDED

    def blocks_more(self, precision: float) -> float | None:
        """How many more blocks would bring the interval within `precision` of the ratio, as far as one can tell."""
        if self.spread is None:
            return None
        t = quantile(self.spread.degrees)
        return t * t * self.spread.variance / math.log1p(precision) ** 2 - self.n


def interval(means: Sequence[float], spread: Spread | None = None) -> Interval:
    """The interval of the blocks' means, by their own variance unless another is given."""
    if len(means) > 1 and spread is None:
        spread = Spread(variance(means), len(means) - 1, moderated=False)
    return Interval(len(means), fmean(means), spread if len(means) > 1 else None)
