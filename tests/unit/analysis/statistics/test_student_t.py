from __future__ import annotations

import math

import pytest
from scipy import stats

from analysis.statistics.student_t import central_probability, p_value, quantile


@pytest.mark.parametrize("degrees", [*range(1, 31), 2.5, 5.7, 60, 120, 500, 10_000])
def test_quantile_is_the_one_that_scipy_computes(degrees: float) -> None:
    assert quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-9)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_quantile_holds_for_other_confidences(confidence: float) -> None:
    assert quantile(4, confidence) == pytest.approx(stats.t.ppf((1 + confidence) / 2, 4), rel=1e-10)


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 5.0, 100.0])
@pytest.mark.parametrize("degrees", [1, 2, 3, 7.4, 10, 99])
def test_probabilities_are_those_of_the_t_distribution(t: float, degrees: float) -> None:
    expected = stats.t.cdf(t, degrees) - stats.t.cdf(-t, degrees)
    assert central_probability(t, degrees) == pytest.approx(expected, abs=1e-13)
    assert p_value(-t, degrees) == pytest.approx(2 * stats.t.sf(t, degrees), rel=1e-9)


def test_a_difference_without_any_spread_is_certain() -> None:
    assert p_value(math.inf, 2) == 0.0
