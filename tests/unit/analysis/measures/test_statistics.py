"""The statistics against SciPy, an independent computation, on made data with known answers.

Every case is a cell of one DataFrame, computed once; each test looks at its own cell.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from analysis.measures import statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.java

SCHEMA = (
    "cell string, others string, message_size bigint, batch_size int, mode string, architecture string, "
    "architecture_rank int, role string, `try` int, metric string, value double"
)
Tries = Mapping[int, float]


def tries(*rates: float) -> Tries:
    return dict(enumerate(rates, 1))


def noisy(mean: float, count: int, seed: int) -> Tries:
    generator = random.Random(seed)
    return tries(*(generator.gauss(mean, mean * 0.01) for _ in range(count)))


# Blocks may differ far more than architectures do.
DRIFT = (100.0, 80.0, 125.0, 90.0)
WHOLE: Mapping[str, dict[int, float]] = {"zookeeper": {1: 100, 3: 110, 4: 90}, "dsbs": {1: 120, 3: 130, 4: 115}}
CASES: Mapping[str, Mapping[str, Tries]] = {
    "wild mean": {"dsbs": tries(101_000, 97_500, 99_000, 250_000)},
    "pairs": {"zookeeper": noisy(100, 5, seed=1), "dsbs": noisy(180, 5, seed=2)},
    "no difference": {"zookeeper": noisy(100, 4, seed=3), "dsbs": noisy(100, 4, seed=4)},
    "identical": {"zookeeper": tries(7, 9), "dsbs": tries(7, 9)},
    "5 % more": {"zookeeper": tries(*DRIFT), "dsbs": tries(*(r * 1.05 * (1 + n / 1000) for n, r in enumerate(DRIFT)))},
    "5 % less": {"zookeeper": tries(*DRIFT), "dsbs": tries(*(r * 0.95 * (1 - n / 1000) for n, r in enumerate(DRIFT)))},
    "one wild try": {"zookeeper": tries(100, 101, 99, 100), "dsbs": tries(105, 106, 104, 900)},
    "whole": WHOLE,
    "missing tries": {"zookeeper": WHOLE["zookeeper"] | {2: 5.0}, "dsbs": WHOLE["dsbs"] | {5: 7.0}},
    "one try": {"zookeeper": tries(100), "dsbs": tries(150)},
    "no common block": {"zookeeper": {1: 100}, "dsbs": {2: 100}},
    "three": {"static": tries(4), "zookeeper": tries(1), "dsbs": tries(2)},
    "many tries": {"dsbs": noisy(1000, 150, seed=5)},
}


@pytest.fixture(scope="module")
def values(spark: SparkSession) -> DataFrame:
    rows = [
        (cell, "", 8, 20, "split", name, rank, "production", number, "rps", float(value))
        for cell, rates in CASES.items()
        for rank, (name, own) in enumerate(rates.items())
        for number, value in own.items()
    ]
    return spark.createDataFrame(rows, SCHEMA).cache()


@pytest.fixture(scope="module")
def cells(values: DataFrame) -> dict[tuple[str, str], Row]:
    return {(row.cell, row.architecture): row for row in statistics.cells(values).collect()}


@pytest.fixture(scope="module")
def ratios(values: DataFrame) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {cell: [] for cell in CASES}
    for row in statistics.ratios(values).collect():
        found[row.cell].append(row)
    return found


def test_cell_statistics_are_those_of_scipy(cells: dict[tuple[str, str], Row]) -> None:
    rates = list(CASES["wild mean"]["dsbs"].values())
    row = cells["wild mean", "dsbs"]
    low, high = stats.t.interval(0.95, len(rates) - 1, loc=np.mean(rates), scale=stats.sem(rates))
    expected = (np.mean(rates), np.std(rates, ddof=1), np.std(rates, ddof=1) / np.mean(rates), low, high)
    assert row.n == 4
    assert (row["mean"], row.sd, row.cv, row.low, row.high) == pytest.approx(expected, rel=1e-12)


def test_interval_of_very_many_tries_is_little_too_wide_and_never_too_narrow(cells: dict[tuple[str, str], Row]) -> None:
    rates = list(CASES["many tries"]["dsbs"].values())
    row = cells["many tries", "dsbs"]
    low, high = stats.t.interval(0.95, len(rates) - 1, loc=np.mean(rates), scale=stats.sem(rates))
    assert 1 <= (row.high - row.low) / (high - low) < 1.01


def test_one_try_has_a_mean_and_neither_spread_nor_interval(cells: dict[tuple[str, str], Row]) -> None:
    row = cells["one try", "dsbs"]
    assert (row.n, row["mean"], row.sd, row.cv, row.low, row.high) == (1, 150.0, None, None, None, None)


def test_ratio_and_interval_are_those_of_a_paired_t_test_on_logarithms(ratios: dict[str, list[Row]]) -> None:
    base, other = CASES["pairs"].values()
    (row,) = ratios["pairs"]
    logs = [math.log(other[number] / base[number]) for number in base]
    interval = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    assert (row.architecture, row.against, row.n) == ("dsbs", "zookeeper", 5)
    assert (row.ratio, row.low, row.high) == pytest.approx(
        (math.exp(np.mean(logs)), math.exp(interval.low), math.exp(interval.high)), rel=1e-12
    )
    assert row.ratio == pytest.approx(stats.gmean(list(other.values())) / stats.gmean(list(base.values())), rel=1e-12)


def test_no_difference_is_not_distinguishable(ratios: dict[str, list[Row]]) -> None:
    (row,) = ratios["no difference"]
    assert row.low < 1 < row.high
    assert row.verdict == "not distinguishable"


def test_identical_tries_are_not_distinguishable(ratios: dict[str, list[Row]]) -> None:
    (row,) = ratios["identical"]
    assert (row.ratio, row.low, row.high, row.verdict) == (1.0, 1.0, 1.0, "not distinguishable")


@pytest.mark.parametrize(("case", "factor", "verdict"), [("5 % more", 1.05, "faster"), ("5 % less", 0.95, "slower")])
def test_five_percent_that_hold_in_every_block_are_found(
    ratios: dict[str, list[Row]], case: str, factor: float, verdict: str
) -> None:
    (row,) = ratios[case]
    assert row.verdict == verdict
    assert row.ratio == pytest.approx(factor, rel=0.002)


def test_one_wild_try_leaves_the_matter_open(ratios: dict[str, list[Row]]) -> None:
    (row,) = ratios["one wild try"]
    assert row.verdict == "not distinguishable"


def test_missing_try_takes_its_partner_out_of_the_pairs(ratios: dict[str, list[Row]]) -> None:
    (whole,), (lame,) = ratios["whole"], ratios["missing tries"]
    assert (lame.n, lame.ratio, lame.low, lame.high) == (3, whole.ratio, whole.low, whole.high)


def test_one_try_has_a_ratio_but_no_verdict(ratios: dict[str, list[Row]]) -> None:
    (row,) = ratios["one try"]
    assert (row.ratio, row.low, row.high) == (pytest.approx(1.5, rel=1e-15), None, None)
    assert row.verdict == "one try"


def test_tries_without_a_common_block_are_not_compared(ratios: dict[str, list[Row]]) -> None:
    assert ratios["no common block"] == []


def test_every_pair_is_compared_once_and_the_control_is_always_the_base(ratios: dict[str, list[Row]]) -> None:
    assert sorted((row.architecture, row.against) for row in ratios["three"]) == [
        ("dsbs", "static"),
        ("dsbs", "zookeeper"),
        ("zookeeper", "static"),
    ]


def run_of(spark: SparkSession, rates: Mapping[str, Tries], axes: str = "") -> DataFrame:
    """One cell of a run that calls it by a name of its own."""
    rows = [
        (f"cell of {len(rates)}", axes, 8, 20, "split", name, rank, "production", number, "rps", float(value))
        for rank, (name, own) in enumerate(rates.items())
        for number, value in own.items()
    ]
    return spark.createDataFrame(rows, SCHEMA)


FIRST = {"zookeeper": noisy(100, 3, seed=6), "dsbs": noisy(180, 3, seed=7)}
SECOND = {"static": noisy(300, 5, seed=8), "zookeeper": noisy(104, 5, seed=9), "dsbs": noisy(290, 5, seed=10)}


def welch(first: Tries, second: Tries) -> tuple[float, float, float]:
    """Ratio and interval from SciPy, at the whole number of degrees of freedom below Welch's."""
    logs = [[math.log(value) for value in run.values()] for run in (first, second)]
    found = stats.ttest_ind(logs[1], logs[0], equal_var=False)
    error = (np.mean(logs[1]) - np.mean(logs[0])) / found.statistic
    half = stats.t.ppf(0.975, math.floor(found.df)) * error
    middle = np.mean(logs[1]) - np.mean(logs[0])
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def test_rates_of_two_runs_are_compared_by_welchs_t(spark: SparkSession) -> None:
    first, second = run_of(spark, FIRST), run_of(spark, SECOND)
    rows = {
        row.architecture: row for row in statistics.rates_between(statistics.ranked_as(first, second), second).collect()
    }
    assert set(rows) == {"zookeeper", "dsbs"}
    for name, row in rows.items():
        assert (row.ratio, row.low, row.high) == pytest.approx(welch(FIRST[name], SECOND[name]), rel=1e-9)
        assert (row.n_first, row.n_second) == (3, 5)
        assert row.first == pytest.approx(stats.gmean(list(FIRST[name].values())))
    assert rows["dsbs"].verdict == "faster"


def test_ratios_of_two_runs_keep_each_runs_own_verdict(spark: SparkSession) -> None:
    first, second = run_of(spark, FIRST), run_of(spark, SECOND)
    (row,) = statistics.ratios_between(statistics.ranked_as(first, second), second).collect()
    ratios = [{n: run["dsbs"][n] / run["zookeeper"][n] for n in run["dsbs"]} for run in (FIRST, SECOND)]
    assert (row.architecture, row.against, row.verdict_first, row.verdict_second) == (
        "dsbs",
        "zookeeper",
        *["faster"] * 2,
    )
    assert (row.ratio, row.low, row.high) == pytest.approx(welch(*ratios), rel=1e-9)


def test_one_try_or_no_spread_of_a_run_is_no_division_by_zero(spark: SparkSession) -> None:
    still, once = run_of(spark, {"dsbs": tries(7, 7)}), run_of(spark, {"dsbs": tries(7)})
    (row,) = statistics.rates_between(still, still).collect()
    assert (row.ratio, row.low, row.high, row.verdict) == (1.0, 1.0, 1.0, "not distinguishable")
    (row,) = statistics.rates_between(still, once).collect()
    assert (row.ratio, row.low, row.high, row.verdict) == (1.0, None, None, "one try")


def test_cells_with_other_axes_are_not_the_same_cell(spark: SparkSession) -> None:
    assert statistics.rates_between(run_of(spark, FIRST), run_of(spark, FIRST, axes="brokers=5")).collect() == []


def test_nothing_valid_gives_no_row(values: DataFrame) -> None:
    assert statistics.cells(values.where("false")).collect() == []
    assert statistics.ratios(values.where("false")).collect() == []


def test_digits_do_not_depend_on_the_order_or_the_number_of_partitions(
    values: DataFrame, cells: dict[tuple[str, str], Row], ratios: dict[str, list[Row]]
) -> None:
    scattered = values.repartition(7)
    assert {(row.cell, row.architecture): row for row in statistics.cells(scattered).collect()} == cells
    assert sorted(statistics.ratios(scattered).collect()) == sorted(row for own in ratios.values() for row in own)
