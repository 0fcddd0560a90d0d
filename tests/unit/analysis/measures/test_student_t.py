from __future__ import annotations

import pytest
from scipy import stats

from analysis.measures.student_t import DEGREES_MAX, central_probability, quantile


@pytest.mark.parametrize("degrees", [*range(1, 31), 60, 61, DEGREES_MAX])
def test_quantile_is_the_one_that_scipy_computes(degrees: int) -> None:
    assert quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-12)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_quantile_holds_for_other_confidences(confidence: float) -> None:
    assert quantile(4, confidence) == pytest.approx(stats.t.ppf((1 + confidence) / 2, 4), rel=1e-12)


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 5.0, 100.0])
@pytest.mark.parametrize("degrees", [1, 2, 3, 10, 99])
def test_central_probability_is_that_of_the_t_distribution(t: float, degrees: int) -> None:
    expected = stats.t.cdf(t, degrees) - stats.t.cdf(-t, degrees)
    assert central_probability(t, degrees) == pytest.approx(expected, abs=1e-14)


def test_more_tries_than_the_table_widen_the_interval_by_little() -> None:
    assert 1 < quantile(DEGREES_MAX) / stats.norm.ppf(0.975) < 1.011
