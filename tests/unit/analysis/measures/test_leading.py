"""The leading part of a window, on noise of which it is known what should be dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from analysis.measures.leading import Slice, leading

SLICE_NS = 20_000_000
Noise = Callable[[np.random.Generator, int], npt.NDArray[Any]]
NOISES: dict[str, Noise] = {
    "normal, 10 %": lambda random, n: random.normal(2_000, 200, n),
    "normal, 20 %": lambda random, n: random.normal(2_000, 400, n),
    "lognormal": lambda random, n: 2_000 * random.lognormal(0, 0.3, n),
    "few requests": lambda random, n: 20.0 * random.poisson(5, n),
}


def dropped(counts: npt.NDArray[Any], grain: float = 20) -> int:
    slices = [Slice(max(1, round(count)), (place + 1) * SLICE_NS) for place, count in enumerate(counts)]
    return leading(slices, 0, grain)


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
@pytest.mark.parametrize("count", [12, 25, 50])
def test_stationary_noise_loses_nothing_in_95_percent_of_windows(noise: Noise, count: int) -> None:
    """1,500 windows: three standard errors above 5 % are 6.7 %."""
    random = np.random.default_rng(2017)
    lost = sum(dropped(noise(random, count)) > 0 for _ in range(1_500))
    assert lost / 1_500 < 0.067


@pytest.mark.parametrize("count", [12, 25])
def test_ramp_of_60_ms_is_dropped(count: int) -> None:
    """Its third slice, at five sixths of the rate, is within the noise of one slice; the first two never are."""
    random = np.random.default_rng(2017)
    ramp = np.ones(count)
    ramp[:3] = (1 / 6, 1 / 2, 5 / 6)
    found = [dropped(random.normal(2_000, 200, count) * ramp) for _ in range(300)]
    assert sum(number >= 2 for number in found) / 300 > 0.98
    assert sum(number > 3 for number in found) / 300 < 0.2


def test_stop_at_the_start_is_dropped_though_its_slices_are_empty() -> None:
    slices = [Slice(200, 4 * SLICE_NS), *(Slice(2_000 + k % 3, (k + 1) * SLICE_NS) for k in range(4, 14))]
    assert leading(slices, 0, 20) == 1


def test_burst_at_the_start_is_dropped_too() -> None:
    counts = np.full(20, 1_000.0) + np.arange(20) % 3
    counts[:2] = 5_000
    assert dropped(counts) == 2


def test_no_more_than_the_first_half_is_ever_dropped() -> None:
    counts = np.full(20, 1_000.0) + np.arange(20) % 3
    counts[:10] = 100
    assert dropped(counts) == 10


def test_a_request_more_or_less_is_no_difference() -> None:
    counts = np.full(20, 1_000.0)
    counts[0] = 500
    assert dropped(counts, grain=500) == 0
    assert dropped(counts, grain=20) == 1


def test_too_short_a_window_says_nothing() -> None:
    assert dropped(np.array([1.0, 900, 1_000, 1_001])) == 0
    assert leading([], 0, 20) == 0
