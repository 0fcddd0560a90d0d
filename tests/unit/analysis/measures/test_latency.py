from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as fn

from analysis import load
from analysis.findings import Findings
from analysis.measures import latency, rates
from tests import made_records
from tests.histograms import bucket_range_ns
from tests.made_records import MadeTrial
from workloads import results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java


def test_buckets_are_those_of_the_raw_records(spark: SparkSession) -> None:
    edges = [base + step for base in (1 << power for power in range(63)) for step in (-1, 0, 1)]
    values = sorted({0, 3, 123_456_789, *edges})
    frame = spark.createDataFrame([(value,) for value in values], "v bigint")
    bucket = latency.bucket_of(fn.col("v"))
    rows = frame.select("v", bucket.alias("b"), latency.bucket_highest(bucket).alias("high")).collect()
    assert [(row.b, row.high) for row in rows] == [
        (results.bucket_of(v), bucket_range_ns(results.bucket_of(v))[1]) for v in values
    ]


def test_quantiles_are_the_highest_value_of_the_bucket_that_reaches_them(spark: SparkSession, tmp_path: Path) -> None:
    made = MadeTrial("dsbs")
    folder = made_records.write(tmp_path, [made])
    records = load.load(spark, folder)
    rated = rates.rates(records.trials, records.requests)
    counted = spark.createDataFrame(
        [
            (made.trial_id, "end to end", results.bucket_of(ns), count)
            for ns, count in ((100, 900), (200, 99), (9000, 1))
        ],
        "trial_id string, kind string, bucket bigint, count bigint",
    )
    (row,) = latency.quantiles(counted, rated).collect()
    assert (row.n, row.p50_ns, row.p90_ns, row.p99_ns, row.p999_ns) == (1000, 100, 100, 200, 200)
    assert row.max_ns == bucket_range_ns(results.bucket_of(9000))[1]


def test_histograms_of_all_valid_tries_add_up(analysed: Findings) -> None:
    rows = [row for row in analysed.latency if row["kind"] == "end to end" and row["architecture"] == "dsbs"]
    counts = {(row["message_size"], row["batch_size"], row["mode"]): row["n"] for row in rows}
    assert counts.pop((8, 20, "split")) == 60_000  # one of its tries is invalid
    assert set(counts.values()) == {90_000}
    assert all(row["p50_ns"] == pytest.approx(1e6, rel=1e-3) for row in rows)
    assert all(row["p999_ns"] == pytest.approx(1e7, rel=1e-3) for row in rows)


def test_every_request_of_a_slice_counts_and_a_failed_one_does_not(spark: SparkSession) -> None:
    schema = (
        "trial_id string, role string, requests int, status string, sent_ns bigint, done_ns bigint, "
        "latency_index array<int>, latency_count array<bigint>"
    )
    rows = [
        ("t", "producer", 1, "ok", 0, 70, [], []),
        ("t", "producer", 3, "ok", 0, 999, [70, 80], [1, 2]),
        ("t", "producer", 1, "timed_out", 0, 70, [], []),
        ("t", "producer", 5, "ok", 0, 70, None, None),  # a slice that brought no histogram says nothing
    ]
    none = spark.createDataFrame(
        [], "trial_id string, kind string, latency_index array<int>, latency_count array<bigint>"
    )
    counted = latency.histograms(spark.createDataFrame(rows, schema), none).collect()
    assert sorted((row.kind, row.bucket, row["count"]) for row in counted) == [
        ("producer request", 70, 1),
        ("producer request", 70, 1),
        ("producer request", 80, 2),
    ]


def test_rate_over_time_leaves_out_the_slice_that_the_end_cuts(spark: SparkSession, tmp_path: Path) -> None:
    made = MadeTrial("dsbs", production_s=0.35, consumption_s=29.95, rows=70, messages=70_000)
    other = MadeTrial("dsbs", production_s=0.35, batch_size=1)
    records = load.load(spark, made_records.write(tmp_path, [made, other]))
    rated = rates.rates(records.trials, records.requests)
    rows = latency.over_time(records.requests, rated, made.cell).collect()
    assert {row.cell for row in rows} == {made.cell}
    slices = {row.at_s: row.rps for row in rows if row.role == "production"}
    assert sorted(slices) == pytest.approx([0.05, 0.15, 0.25])
    assert all(rate == pytest.approx(200_000, rel=0.1) for rate in slices.values())
    assert 290 < max(row.slice for row in rows if row.role == "consumption") < 300


def test_long_windows_have_longer_slices_so_that_their_number_is_bounded(spark: SparkSession, tmp_path: Path) -> None:
    """An hour, too: nanoseconds of more than 2.1 s do not fit 32 bits, and a slice's length is one of them."""
    made = MadeTrial("dsbs", production_s=3600, consumption_s=30.05, rows=7_200, messages=72_000)
    records = load.load(spark, made_records.write(tmp_path, [made]))
    rated = rates.rates(records.trials, records.requests)
    rows = latency.over_time(records.requests, rated, made.cell).collect()
    of = {
        role: sorted((row.at_s, row.rps) for row in rows if row.role == role) for role in ("production", "consumption")
    }
    assert (len(of["production"]), len(of["consumption"])) == (latency.SLICES_MAX, 150)
    assert of["production"][0] == (pytest.approx(6), pytest.approx(20, rel=0.1))
    assert of["consumption"][0][0] == pytest.approx(0.1)
