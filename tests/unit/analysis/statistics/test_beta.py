from __future__ import annotations

import pytest
from scipy import stats

from analysis.statistics.beta import f_quantile, incomplete, share_interval


@pytest.mark.parametrize(("a", "b"), [(0.5, 1), (1, 0.5), (2, 3), (0.5, 60), (40, 0.5), (30, 70), (500, 500)])
@pytest.mark.parametrize("x", [0.0, 1e-9, 0.1, 0.5, 0.73, 0.999, 1.0])
def test_probability_is_that_of_the_beta_distribution(x: float, a: float, b: float) -> None:
    assert incomplete(x, a, b) == pytest.approx(stats.beta.cdf(x, a, b), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize(("found", "of"), [(0, 28), (1, 28), (3, 28), (28, 28), (7, 500), (1, 1)])
def test_interval_of_a_share_is_clopper_and_pearsons(found: int, of: int) -> None:
    expected = stats.binomtest(found, of).proportion_ci(0.95, method="exact")
    assert share_interval(found, of) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize(("above", "below"), [(2, 3.7), (2, 25), (4, 1.2), (9, 1e6)])
def test_quantile_of_f_is_the_one_that_scipy_computes(above: float, below: float) -> None:
    assert f_quantile(0.99, above, below) == pytest.approx(stats.f.ppf(0.99, above, below), rel=1e-6)
