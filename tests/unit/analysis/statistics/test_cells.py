from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.cells import cells
from tests.unit.analysis.statistics.logs import run, window

RATES = (101_000.0, 97_500.0, 99_000.0, 250_000.0)


def test_cell_statistics_are_those_of_scipy() -> None:
    rows = {row["metric"]: row for row in cells(run({"dsbs": dict(enumerate(RATES))}))}
    row = rows["rps"]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(RATES), scale=stats.sem(RATES))
    sd = np.std(RATES, ddof=1)
    assert (row["n"], row["windows"]) == (4, 4)
    assert [row[name] for name in ("mean", "sd", "cv", "low", "high", "geometric")] == pytest.approx(
        [np.mean(RATES), sd, sd / np.mean(RATES), low, high, stats.gmean(RATES)], rel=1e-9
    )
    assert rows["kbps"]["mean"] == pytest.approx(np.mean(RATES) / 100)


def test_block_counts_once_however_many_windows_it_has() -> None:
    own = [window("dsbs", rps, block, turn) for rps, block, turn in ((10, 1, 1), (20, 1, 2), (30, 1, 3), (40, 2, 1))]
    row = cells(own)[0]
    assert (row["n"], row["windows"], row["mean"]) == (2, 4, 30)
    assert row["geometric"] == pytest.approx(math.sqrt(math.cbrt(6_000) * 40))


def test_one_block_has_a_mean_and_neither_spread_nor_interval() -> None:
    row = cells([window("dsbs", 150.0)])[0]
    assert [row[name] for name in ("n", "mean", "sd", "cv", "low", "high")] == [1, 150.0, None, None, None, None]


def test_window_that_does_not_count_is_in_no_statistic() -> None:
    assert cells([window("dsbs", None)]) == []


def test_order_of_the_windows_changes_no_digit() -> None:
    own = [window("dsbs", 0.1 * turn, block, turn) for block in (1, 2, 3) for turn in (1, 2, 3)]
    assert cells(own) == cells(own[::-1])
