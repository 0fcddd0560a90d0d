"""The statistic by which a run stops is computed by the runner, and is the report's."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from analysis.measures import rates, statistics
from workloads.results import REQUESTS
from workloads.run.precision import rates_of, ratio_interval

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java

SCHEMA = (
    "cell string, others string, message_size bigint, batch_size int, mode string, architecture string, "
    "architecture_rank int, role string, `try` int, metric string, value double"
)


def test_the_interval_of_a_ratio_is_the_reports(spark: SparkSession) -> None:
    generator = random.Random(9)
    rates = {
        name: [generator.gauss(mean, mean / 20) for _ in range(150)] for name, mean in (("zk", 100), ("dsbs", 170))
    }
    rows = [
        (str(tries), "", 8, 20, "split", name, rank, "production", number, "rps", rates[name][number])
        for tries in (2, 3, 5, 150)
        for rank, name in enumerate(rates)
        for number in range(tries)
    ]
    found = {int(row["cell"]): row for row in statistics.ratios(spark.createDataFrame(rows, SCHEMA)).collect()}
    assert found.keys() == {2, 3, 5, 150}
    for tries, row in found.items():
        logs = [math.log(one / other) for one, other in zip(rates["dsbs"][:tries], rates["zk"], strict=False)]
        assert row["high"] / row["ratio"] - 1 == pytest.approx(ratio_interval(logs), rel=1e-9)
        assert row["ratio"] / row["low"] - 1 == pytest.approx(ratio_interval(logs), rel=1e-9)


def test_the_rates_of_a_trial_are_the_reports(spark: SparkSession, run_folder: Path) -> None:
    roles = {"production": "producer", "consumption": "consumer"}
    windows = rates.windows(spark.read.parquet(str(run_folder / REQUESTS))).collect()
    expected: dict[str, dict[str, float]] = {}
    for row in windows:
        rate = row["messages_done"] / (row["last_ns"] - row["first_ns"]) * 1e9
        expected.setdefault(row["trial_id"], {})[roles[row["role"]]] = rate
    tables = [pq.read_table(path) for path in (run_folder / REQUESTS).glob("*.parquet")]
    assert {table.column("trial_id")[0].as_py(): rates_of(table) for table in tables} == {
        trial: pytest.approx(rates) for trial, rates in expected.items()
    }
