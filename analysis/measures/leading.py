"""The leading part of a window that is unlike its second half: clients or brokers that were not yet up to speed. Pure.

A window is cut into slices. The second half says what is usual. The leading part is the longest run of first slices,
within the first half, that all lie below the least, or all above the greatest, slice of the second half. It is
dropped where its mean lies further from that of the second half than chance explains (Student's t; decision 0046).
Ranks alone would drop too much of a short window, and means alone would not say where the part ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import fmean, variance

from analysis.statistics.student_t import quantile

CONFIDENCE = 0.975
_USUAL_MIN = 3  # slices of the second half, below which nothing is known


@dataclass(frozen=True, slots=True)
class Slice:
    """The messages of a slice, up to the last one's end."""

    messages: int
    end_ns: int


def leading(slices: Sequence[Slice], start_ns: int, grain: float) -> int:
    """How many first slices to drop. `grain`: the messages of a request, below which a rate has no resolution.

    A slice lasts from the end of the one before it, so one that held nothing belongs to the next.
    """
    if not slices:
        return 0
    starts = [start_ns, *(one.end_ns for one in slices[:-1])]
    lengths = [one.end_ns - start for one, start in zip(slices, starts, strict=True)]
    middle = (start_ns + slices[-1].end_ns) / 2
    rates = [one.messages / length for one, length in zip(slices, lengths, strict=True)]
    usual = [rate for rate, start in zip(rates, starts, strict=True) if start >= middle]
    first = [rate for rate, one in zip(rates, slices, strict=True) if one.end_ns <= middle]
    if len(usual) < _USUAL_MIN:
        return 0
    run = _unlike(first, usual)
    resolution = grain / fmean(lengths)
    return len(run) if run and _differs(run, usual, resolution) else 0


def _unlike(first: Sequence[float], usual: Sequence[float]) -> list[float]:
    below = list(takewhile(lambda rate: rate < min(usual), first))
    return below or list(takewhile(lambda rate: rate > max(usual), first))


def _differs(run: Sequence[float], usual: Sequence[float], resolution: float) -> bool:
    spread = max(math.sqrt(variance(usual)), resolution)
    error = spread * math.sqrt(1 / len(run) + 1 / len(usual))
    return abs(fmean(run) - fmean(usual)) > quantile(len(usual) - 1, CONFIDENCE) * error
