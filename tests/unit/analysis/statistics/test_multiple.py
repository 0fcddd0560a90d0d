from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.multiple import holm, survivors


def test_differences_that_stand_are_benjamini_and_hochbergs() -> None:
    random = np.random.default_rng(1)
    for _ in range(50):
        values = random.beta(0.4, 1.5, 20)
        expected = list(stats.false_discovery_control(values) <= 0.05)
        assert survivors([float(value) for value in values]) == expected


def test_a_comparison_without_a_probability_neither_stands_nor_counts() -> None:
    assert survivors([0.04, None, None]) == [True, False, False]
    assert survivors([]) == []
    assert survivors([0.04, 0.9]) == [False, False]


def test_holm_multiplies_the_least_by_all_and_the_next_by_those_that_are_left() -> None:
    assert holm([0.03, 0.01, None, 0.02]) == pytest.approx([0.04, 0.03, None, 0.04])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
