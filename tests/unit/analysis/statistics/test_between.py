from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.between import rates_between, ratios_between
from tests.unit.analysis.statistics.logs import run

Rates = Mapping[int, float]


def noisy(mean: float, blocks: int, seed: int) -> dict[int, float]:
    return {
        number: float(rate) for number, rate in enumerate(np.random.default_rng(seed).normal(mean, mean / 99, blocks))
    }


FIRST = {"zookeeper": noisy(100, 3, 6), "dsbs": noisy(180, 3, 7)}
SECOND = {"static": noisy(300, 5, 8), "zookeeper": noisy(104, 5, 9), "dsbs": noisy(290, 5, 10)}


def welch(first: Rates, second: Rates) -> tuple[float, float, float]:
    """Ratio and interval from SciPy."""
    logs = [[math.log(value) for value in own.values()] for own in (first, second)]
    found = stats.ttest_ind(logs[1], logs[0], equal_var=False)
    ends = found.confidence_interval(0.95)
    return math.exp(np.mean(logs[1]) - np.mean(logs[0])), math.exp(ends.low), math.exp(ends.high)


def test_rates_of_two_runs_are_compared_by_welchs_t() -> None:
    rows = {row["architecture"]: row for row in rates_between(run(FIRST, cell="one"), run(SECOND, cell="other"))}
    assert set(rows) == {"zookeeper", "dsbs"}
    for name, row in rows.items():
        expected = welch(FIRST[name], SECOND[name])
        assert (row["ratio"], row["low"], row["high"]) == pytest.approx(expected, rel=1e-9)
        assert (row["n_first"], row["n_second"]) == (3, 5)
        assert row["first"] == pytest.approx(stats.gmean(list(FIRST[name].values())))
    assert rows["dsbs"]["verdict"] == "faster"


def test_ratios_of_two_runs_keep_each_runs_own_verdict() -> None:
    (row,) = ratios_between(run(FIRST), run(SECOND))
    ratios = [{n: own["dsbs"][n] / own["zookeeper"][n] for n in own["dsbs"]} for own in (FIRST, SECOND)]
    assert (row["architecture"], row["against"]) == ("dsbs", "zookeeper")
    assert (row["verdict_first"], row["verdict_second"]) == ("faster", "faster")
    assert (row["ratio"], row["low"], row["high"]) == pytest.approx(welch(*ratios), rel=1e-9)
    assert (row["first"], row["second"]) == pytest.approx([stats.gmean(list(own.values())) for own in ratios])


def test_ratios_are_in_the_second_runs_direction() -> None:
    other = [{**row, "architecture_rank": 9 - int(row["architecture_rank"])} for row in run(SECOND)]
    rows = ratios_between(run({"static": FIRST["dsbs"], "dsbs": FIRST["dsbs"]}), other)
    assert [(row["architecture"], row["against"]) for row in rows] == [("dsbs", "static")]
    assert (rows[0]["architecture_rank"], rows[0]["against_rank"]) == (7, 6)


def test_one_block_or_no_spread_of_a_run_is_no_division_by_zero() -> None:
    still, once = run({"dsbs": {1: 7.0, 2: 7.0}}), run({"dsbs": {1: 7.0}})
    (row,) = rates_between(still, still)
    assert [row[name] for name in ("ratio", "low", "high", "verdict")] == [1.0, 1.0, 1.0, "undecided"]
    (row,) = rates_between(still, once)
    assert [row[name] for name in ("ratio", "low", "high", "verdict")] == [1.0, None, None, "one try"]


def test_cells_with_other_axes_are_not_the_same_cell() -> None:
    assert rates_between(run(FIRST), run(FIRST, others="brokers=5")) == []
