"""Variances that borrow from their family: the moderated t of Smyth (2004). Pure.

Two or three blocks tell little about a cell's own variance. The variances of a family are taken as draws from one
distribution, s0^2 d0 / chi^2(d0), fitted to the logarithms of the variances found; a cell's variance is then
(d0 s0^2 + d s^2) / (d0 + d), with d0 + d degrees of freedom.

A family is a pair of architectures. Its levels are roles and modes: they share d0, and each has an s0^2 of its own,
because windows of streaming scatter more than others. Simulation chose both, and the bound of d0 (decision 0045).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import fmean

from analysis.statistics.beta import f_quantile

FAMILY_MIN = 8  # variances, below which a family tells nothing
LEVEL_MIN = 4
# What a family says weighs as much as this many degrees of freedom at most: an estimate of d0 from a few variances is
# often infinite by chance alone.
PRIOR_DEGREES_MAX = 6.0
# A cell beyond this point of F(d, d0) is no draw from the family's distribution, and keeps its own variance.
OUTLIER = 0.99
_SHIFT = 10.0  # from here on the asymptotic series have full precision
_NEWTON_STEPS = 50


@dataclass(frozen=True, slots=True)
class Own:
    """The variance that a cell has of itself."""

    variance: float
    degrees: int
    level: Hashable = None


@dataclass(frozen=True, slots=True)
class Spread:
    """A variance, and how many degrees of freedom stand behind it."""

    variance: float
    degrees: float
    moderated: bool


@dataclass(frozen=True, slots=True)
class Prior:
    """What a family says: the variance of each level that has enough cells, and the degrees that it is worth."""

    variances: dict[Hashable, float]
    degrees: float


def moderated(family: Sequence[Own]) -> list[Spread]:
    """The variances of a family, each between its own and that of its level."""
    prior = fit(family)
    return [_shrunk(one, prior) for one in family]


def fit(family: Sequence[Own]) -> Prior | None:
    """The family's prior; None where it is too small to tell one. A variance of zero says nothing about it."""
    levels: dict[Hashable, list[Own]] = defaultdict(list)
    for one in family:
        if one.variance > 0:
            levels[one.level].append(one)
    enough = {level: own for level, own in levels.items() if len(own) >= LEVEL_MIN}
    count = sum(map(len, enough.values()))
    if count < FAMILY_MIN:
        return None
    logs = {level: [_unbiased_log(one) for one in own] for level, own in enough.items()}
    means = {level: fmean(own) for level, own in logs.items()}
    squares = sum((value - means[level]) ** 2 for level, own in logs.items() for value in own)
    chance = fmean(trigamma(one.degrees / 2) for own in enough.values() for one in own)
    half = _half_degrees(squares / (count - len(enough)) - chance)
    shift = digamma(half) - math.log(half)
    return Prior({level: math.exp(mean + shift) for level, mean in means.items()}, 2 * half)


def _unbiased_log(own: Own) -> float:
    """The logarithm of a variance, of which the mean over many draws is that of the true one."""
    half = own.degrees / 2
    return math.log(own.variance) - digamma(half) + math.log(half)


def _half_degrees(beyond_chance: float) -> float:
    """Half of d0, from the variance of the logarithms that chance does not explain."""
    bound = PRIOR_DEGREES_MAX / 2
    return bound if beyond_chance <= 0 else min(inverse_trigamma(beyond_chance), bound)


def _shrunk(own: Own, prior: Prior | None) -> Spread:
    base = None if prior is None else prior.variances.get(own.level)
    if prior is None or base is None or own.variance <= 0:
        return Spread(own.variance, own.degrees, moderated=False)
    if own.variance / base > f_quantile(OUTLIER, own.degrees, prior.degrees):
        return Spread(own.variance, own.degrees, moderated=False)
    both = prior.degrees + own.degrees
    return Spread((prior.degrees * base + own.degrees * own.variance) / both, both, moderated=True)


def digamma(x: float) -> float:
    """The derivative of ln gamma: by recurrence up to where the asymptotic series is precise."""
    below = 0.0
    while x < _SHIFT:
        below += 1 / x
        x += 1
    y = 1 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760)))))
    return math.log(x) - 0.5 / x - series - below


def trigamma(x: float) -> float:
    """The derivative of digamma."""
    below = 0.0
    while x < _SHIFT:
        below += 1 / (x * x)
        x += 1
    y = 1 / (x * x)
    series = y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * (5 / 66 - y * 691 / 2730)))))
    return below + 1 / x + y / 2 + series / x


def inverse_trigamma(value: float) -> float:
    """The x whose trigamma is `value` (> 0), by Newton's method on 1 / trigamma, which is nearly a line (Smyth)."""
    x = 0.5 + 1 / value
    for _ in range(_NEWTON_STEPS):
        at = trigamma(x)
        step = at * (1 - at / value) / _tetragamma(x)
        x += step
        if -step / x < 1e-12:
            break
    return x


def _tetragamma(x: float) -> float:
    """The derivative of trigamma."""
    below = 0.0
    while x < _SHIFT:
        below -= 2 / (x * x * x)
        x += 1
    y = 1 / (x * x)
    return below - y * (1 + 1 / x + y * (0.5 - y * (1 / 6 - y * (1 / 6 - y * (3 / 10 - y * 5 / 6)))))
