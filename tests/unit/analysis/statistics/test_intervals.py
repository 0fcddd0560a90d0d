"""Intervals against SciPy, and how often they hold the truth where the truth is known."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from analysis.statistics.intervals import interval
from analysis.statistics.moderated_t import Spread

MEANS = (0.11, 0.02, 0.07, 0.09, 0.05)
BLOCK_EFFECT, WINDOW_NOISE = 0.025, 0.11  # of one cluster's start, and of one window's rate, as logarithms


def test_interval_and_probability_are_those_of_a_t_test() -> None:
    found = interval(MEANS).columns()
    expected = stats.ttest_1samp(MEANS, 0)
    ends = expected.confidence_interval(0.95)
    assert (found["low"], found["high"]) == pytest.approx((math.exp(ends.low), math.exp(ends.high)), rel=1e-9)
    assert (found["p"], found["degrees"], found["sd"]) == pytest.approx((expected.pvalue, 4, np.std(MEANS, ddof=1)))
    assert (found["n"], found["ratio"]) == (5, pytest.approx(math.exp(np.mean(MEANS))))


@pytest.mark.parametrize(("sign", "verdict"), [(1, "faster"), (-1, "slower")])
def test_verdict_is_the_side_on_which_the_whole_interval_lies(sign: int, verdict: str) -> None:
    assert interval([sign * mean for mean in MEANS]).verdict == verdict
    assert interval([sign * (mean - 0.05) for mean in MEANS]).verdict == "undecided"


def test_one_block_has_a_ratio_and_nothing_else() -> None:
    found = interval([0.4]).columns()
    assert (found["n"], found["ratio"], found["verdict"]) == (1, pytest.approx(math.exp(0.4)), "one try")
    assert {found[name] for name in ("low", "high", "sd", "degrees", "p")} == {None}
    assert (found["equal"], interval([0.4]).blocks_more(0.1)) == (False, None)


def test_blocks_without_any_spread_are_certain() -> None:
    assert (interval([0.1, 0.1]).p, interval([0.1, 0.1]).verdict) == (0.0, "faster")
    assert (interval([0.0, 0.0]).p, interval([0.0, 0.0]).verdict) == (1.0, "undecided")


@pytest.mark.parametrize(("shift", "equal"), [(0.0, True), (0.03, True), (0.045, False), (-0.045, False)])
def test_equal_is_two_one_sided_tests(shift: float, equal: bool) -> None:
    means = [shift + step for step in (-0.01, 0.0, 0.01, 0.005, -0.005)]
    bound = math.log(1.05)
    each = [
        stats.ttest_1samp(means, -bound, alternative="greater").pvalue,
        stats.ttest_1samp(means, bound, alternative="less").pvalue,
    ]
    assert interval(means).equal == equal == (max(each) < 0.05)


def test_faster_and_equal_may_hold_beside_each_other() -> None:
    found = interval([0.02, 0.021, 0.019])
    assert (found.verdict, found.equal) == ("faster", True)


def test_further_blocks_are_those_that_bring_the_interval_within_the_precision() -> None:
    found = interval([-0.3, 0.3, 0.1, -0.1])
    more = found.blocks_more(0.1)
    assert more is not None
    t = stats.t.ppf(0.975, 3)
    assert t * np.std([-0.3, 0.3, 0.1, -0.1], ddof=1) / math.sqrt(4 + more) == pytest.approx(math.log(1.1))


def test_another_spread_takes_the_place_of_the_own() -> None:
    found = interval(MEANS, Spread(0.04, 6.5, moderated=True))
    assert found.mean == pytest.approx(0.068)
    assert found.spread == Spread(0.04, 6.5, moderated=True)
    assert found.half(0.95) == pytest.approx(stats.t.ppf(0.975, 6.5) * 0.2 / math.sqrt(5))


def block_means(draws: int, cells: int, rounds: tuple[int, ...], seed: int = 2017) -> npt.NDArray[np.float64]:
    """Per draw, cell and block the mean log ratio of two equal architectures.

    A start of a cluster has an effect that all of its cells share; windows of both scatter, each block with its rounds.
    """
    random = np.random.default_rng(seed)
    starts = random.normal(0, BLOCK_EFFECT, (2, draws, 1, len(rounds)))
    windows = random.normal(0, WINDOW_NOISE, (2, draws, cells, len(rounds))) / np.sqrt(rounds)
    both: npt.NDArray[np.float64] = (starts + windows)[0] - (starts + windows)[1]
    return both


def held(means: npt.NDArray[np.float64]) -> float:
    """The share of draws whose interval holds the truth, which is 0."""
    return sum(interval(list(own)).verdict == "undecided" for own in means) / len(means)


# Three standard errors of 4,000 draws.
CHANCE = 3 * math.sqrt(0.05 * 0.95 / 4_000)


@pytest.mark.parametrize("rounds", [(5,) * 3, (5,) * 5, (1, 4, 20), (1, 20, 20, 20, 20), (1, 2, 3, 8, 30)])
def test_interval_of_a_cell_holds_the_truth_in_95_percent_even_where_blocks_have_unequal_rounds(
    rounds: tuple[int, ...],
) -> None:
    """Blocks of one and of thirty rounds are not equally sure: that costs at most two percent."""
    share = held(block_means(4_000, 1, rounds)[:, 0])
    assert share > 0.95 - CHANCE - (0.02 if len(set(rounds)) > 1 else 0)
    assert share < 0.95 + CHANCE + 0.02


@pytest.mark.parametrize("blocks", [3, 5])
def test_pooled_interval_holds_the_truth_in_95_percent(blocks: int) -> None:
    """The starts' effect is shared by all cells, so no number of cells averages it out; blocks are the level."""
    share = held(block_means(4_000, 7, (5,) * blocks).mean(axis=1))
    assert abs(share - 0.95) < CHANCE


def test_windows_taken_as_the_level_would_not_hold_it() -> None:
    """Why blocks are: thirty windows of three blocks, as if each were alone, claim what starts of clusters made."""
    random = np.random.default_rng(2017)
    starts = random.normal(0, BLOCK_EFFECT * math.sqrt(2), (2_000, 3, 1))
    windows = starts + random.normal(0, WINDOW_NOISE * math.sqrt(2), (2_000, 3, 40))
    assert held(windows.reshape(2_000, 120)) < 0.75
