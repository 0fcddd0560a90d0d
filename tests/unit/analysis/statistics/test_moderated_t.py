"""The moderated t, against SciPy and against draws whose distribution is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from analysis.statistics import moderated_t
from analysis.statistics.moderated_t import FAMILY_MIN, Own, Spread, fit, moderated
from analysis.statistics.student_t import quantile


@pytest.mark.parametrize("x", [0.01, 0.5, 1.0, 2.5, 9.99, 10.0, 123.4, 1e6])
def test_polygammas_are_those_of_scipy(x: float) -> None:
    assert moderated_t.digamma(x) == pytest.approx(special.digamma(x), rel=1e-11, abs=1e-12)
    assert moderated_t.trigamma(x) == pytest.approx(special.polygamma(1, x), rel=1e-11)
    assert moderated_t.inverse_trigamma(special.polygamma(1, x)) == pytest.approx(x, rel=1e-8)


def drawn(cells: int, degrees: int = 2, prior: float = 4.0, level: str = "split", factor: float = 1.0) -> list[Own]:
    """Variances of cells whose true ones are spread as the model says, about 0.01."""
    random = np.random.default_rng(1)
    true = factor * 0.01 * prior / random.chisquare(prior, cells)
    return [Own(float(v), degrees, level) for v in true * random.chisquare(degrees, cells) / degrees]


def test_prior_is_found_again_from_its_draws() -> None:
    found = fit([*drawn(20_000), *drawn(20_000, level="streaming", factor=4.0)])
    assert found is not None
    assert found.degrees == pytest.approx(4, rel=0.05)
    assert found.variances == pytest.approx({"split": 0.01, "streaming": 0.04}, rel=0.05)


def test_variances_that_differ_by_chance_alone_still_have_a_say() -> None:
    """A family weighs six degrees at most, however alike its cells are."""
    own = [Own(0.01 * factor, 4) for factor in (0.9, 0.95, 1.0, 1.05, 1.1, 1.0, 1.0, 1.0)]
    assert {spread.degrees for spread in moderated(own)} == {6 + 4}
    assert len({spread.variance for spread in moderated(own)}) == 5


def test_a_small_family_a_small_level_and_a_variance_of_nothing_keep_their_own() -> None:
    small = drawn(FAMILY_MIN - 1)
    assert moderated(small) == [Spread(one.variance, one.degrees, moderated=False) for one in small]
    mixed = moderated([*drawn(20), Own(0.0, 2, "split"), *drawn(3, level="streaming")])
    assert [spread.moderated for spread in mixed[20:]] == [False] * 4


def test_an_outlier_keeps_its_own_variance() -> None:
    spreads = moderated([*drawn(20), Own(5.0, 2, "split")])
    assert spreads[-1] == Spread(5.0, 2, moderated=False)
    assert sum(spread.moderated for spread in spreads) >= 19


def test_a_moderated_variance_lies_between_its_own_and_the_levels() -> None:
    own = drawn(30)
    prior = fit(own)
    assert prior is not None
    for one, spread in zip(own, moderated(own), strict=True):
        if spread.moderated:
            low, high = sorted((one.variance, prior.variances["split"]))
            assert low <= spread.variance <= high
            assert spread.degrees == pytest.approx(prior.degrees + one.degrees)


def coverage(blocks: int, scatters: tuple[float, ...], prior: float, runs: int = 250) -> tuple[list[float], float]:
    """For each level, how often the interval of seven cells holds the truth, and how wide it is beside the cells' own.

    The true variances of a level's cells are spread with `prior` degrees of freedom.
    """
    random = np.random.default_rng(2017)
    cells = 7
    level = np.repeat(np.arange(len(scatters)), cells)
    held, width, own_width = np.zeros(len(scatters)), 0.0, 0.0
    for _ in range(runs):
        true = (0.06 * np.array(scatters)[level]) ** 2 * prior / random.chisquare(prior, level.size)
        logs = random.normal(0, np.sqrt(true)[:, None], (level.size, blocks))
        own = [Own(float(v), blocks - 1, int(at)) for v, at in zip(logs.var(axis=1, ddof=1), level, strict=True)]
        for mean, one, at, spread in zip(logs.mean(axis=1), own, level, moderated(own), strict=True):
            half = quantile(round(spread.degrees, 1)) * math.sqrt(spread.variance / blocks)
            held[at] += abs(mean) <= half
            width += half
            own_width += quantile(one.degrees) * math.sqrt(one.variance / blocks)
    return list(held / runs / cells), width / own_width


@pytest.mark.parametrize("scatters", [(1.0, 1.0, 1.0, 1.0), (1.0, 1.5, 2.0, 3.0)])
@pytest.mark.parametrize("blocks", [3, 5])
def test_interval_holds_the_truth_at_every_level_however_the_levels_scatter(
    blocks: int, scatters: tuple[float, ...]
) -> None:
    """1,750 draws a level: a standard error of 0.5 %."""
    shares, width = coverage(blocks, scatters, prior=8)
    assert min(shares) > 0.925
    assert max(shares) < 0.975
    assert width < (0.7 if blocks == 3 else 0.9)
