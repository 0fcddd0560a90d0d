from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as fn

from analysis import load
from analysis.findings import Findings
from analysis.measures import latency, rates
from analysis.measures.rates import Sums
from tests import made_findings, made_records
from tests.histograms import bucket_range_ns
from tests.made_records import MadeTrial, trial_row
from workloads import results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MS = 1_000_000


@pytest.mark.java
def test_buckets_are_those_of_the_raw_records(spark: SparkSession) -> None:
    edges = [base + step for base in (1 << power for power in range(63)) for step in (-1, 0, 1)]
    values = sorted({0, 3, 123_456_789, *edges})
    frame = spark.createDataFrame([(value,) for value in values], "v bigint")
    bucket = latency.bucket_of(fn.col("v"))
    rows = frame.select("v", bucket.alias("b"), latency.bucket_highest(bucket).alias("high")).collect()
    assert [(row.b, row.high) for row in rows] == [
        (results.bucket_of(v), bucket_range_ns(results.bucket_of(v))[1]) for v in values
    ]


@pytest.mark.java
def test_quantiles_are_the_highest_value_of_the_bucket_that_reaches_them(spark: SparkSession) -> None:
    """Over all windows of a name; another window of the trial is in none."""
    counts = [(1, 100, 900), (2, 200, 99), (2, 9000, 1), (3, 77, 5000)]
    counted = spark.createDataFrame(
        [("t", number, "end to end", results.bucket_of(ns), count) for number, ns, count in counts],
        "trial_id string, number int, kind string, bucket bigint, count bigint",
    )
    named = spark.createDataFrame([("t", 1, 5), ("t", 2, 5)], "trial_id string, number int, name int")
    (row,) = latency.quantiles(counted, named).collect()
    assert (row.name, row.n) == (5, 1000)
    assert (row.p50_ns, row.p90_ns, row.p99_ns, row.p999_ns) == (100, 100, 200, 200)
    assert row.max_ns == bucket_range_ns(results.bucket_of(9000))[1]


@pytest.mark.java
def test_every_request_of_a_slice_counts_and_a_failed_one_does_not(spark: SparkSession) -> None:
    schema = (
        "trial_id string, role string, window_number int, requests int, status string, sent_ns bigint, "
        "done_ns bigint, latency_index array<int>, latency_count array<bigint>"
    )
    rows = [
        ("t", "producer", 4, 1, "ok", 0, 70, [], []),
        ("t", "producer", 4, 3, "ok", 0, 999, [70, 80], [1, 2]),
        ("t", "producer", 4, 1, "timed_out", 0, 70, [], []),
        ("t", "producer", 4, 5, "ok", 0, 70, None, None),  # a slice that brought no histogram says nothing
    ]
    none = spark.createDataFrame(
        [], "trial_id string, window_number int, kind string, latency_index array<int>, latency_count array<bigint>"
    )
    counted = latency.histograms(spark.createDataFrame(rows, schema), none).collect()
    assert sorted((row.number, row.kind, row.bucket, row["count"]) for row in counted) == [
        (4, "producer request", 70, 1),
        (4, "producer request", 70, 1),
        (4, "producer request", 80, 2),
    ]


def valid(*made: MadeTrial) -> list[dict[str, Any]]:
    """The windows of these trials; those at a load hold too few messages for a rate that is compared."""
    return [
        rates.named(trial_row(one)) | {
            "trial_id": one.trial_id, "number": window.number, "try": one.try_, "role": role, "round": window.round,
            "rps": None if one.mode == "load" else 100.0, "messages": 50 * one.try_, "window_s": 0.5,
        }
        for one in made
        for window in made_records.windows(one)
        for role in made_findings.ROLES.values()
    ]  # fmt: skip


LOADED = MadeTrial("dsbs", mode="load", others="load=0.3", columns={"load": 0.3, "rate": 50.0})
FULL = MadeTrial("dsbs")
SINGLE = MadeTrial("dsbs", batch_size=1, columns={"driver": "grpc"})
FORMER = MadeTrial("dsbs", batch_size=50, columns={"schema_version": 2})


def told(*made: MadeTrial) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of latency and of load, where every name has every kind."""
    trials = [trial_row(one) for one in made]
    names, table = latency.groups(trials, valid(*made))
    assert {row["name"] for row in table.to_pylist()} == set(range(len(names)))
    found = [
        {"name": name, "kind": kind, "n": 9} | {f"{q}_ns": 1000 * place for q in latency.QUANTILES}
        for name in range(len(names))
        for place, kind in enumerate(("producer request", "consumer request", "end to end"), 1)
    ]
    return latency.latency(found, names, trials), latency.load(found, names, trials, valid(*made))


def test_latency_at_full_speed_is_told_of_records_of_before_and_of_single_requests_produced() -> None:
    rows, loads = told(FULL, SINGLE, FORMER)
    kinds = {(row["batch_size"], row["kind"]) for row in rows}
    assert kinds == {
        (1, "producer request"), *((50, kind) for kind in ("producer request", "consumer request", "end to end")),
    }  # fmt: skip
    assert loads == []


def test_latency_at_a_load_is_of_both_ends_and_says_what_was_achieved() -> None:
    again = MadeTrial("dsbs", mode="load", others="load=0.3", try_=3, columns=LOADED.columns)
    rows, (load_row,) = told(FULL, LOADED, again)
    assert rows == []
    assert {name: load_row[name] for name in ("load", "rate", "achieved", "n", "others")} == {
        "load": 0.3, "rate": 50.0, "achieved": 200.0, "n": 2, "others": "load=0.3",
    }  # fmt: skip
    assert (load_row["ack_p50_us"], load_row["e2e_p99_us"]) == (1, 3)


def test_histograms_of_all_used_windows_at_a_load_add_up() -> None:
    loads = made_findings.rounds().load
    assert {(row["load"], row["n"]) for row in loads} == {(0.3, 3), (0.6, 3)}
    assert all(row["e2e_p50_us"] == pytest.approx(1_000, rel=1e-3) for row in loads)
    assert all(row["e2e_p99_us"] == pytest.approx(2_000, rel=1e-3) for row in loads)


def test_nothing_is_asked_of_spark_where_no_latency_is_told(found: Findings) -> None:
    assert found.latency == ()
    assert latency.groups([trial_row(FULL)], valid(FULL))[1].num_rows == 0


def looked_at(length_ns: int, windows: int = 1) -> tuple[list[dict[str, Any]], pa.Table]:
    rows = [{**row, "round": number, "number": number} for row in valid(FULL)[:1] for number in range(windows, 0, -1)]
    sums = {(FULL.trial_id, "production", n): Sums(1, 1, 0, 0, 5, 5 + length_ns, {}) for n in range(1, windows + 1)}
    return latency.looked_at(rows, sums, FULL.cell)


def test_first_window_of_each_block_is_looked_at() -> None:
    names, table = looked_at(350 * MS, windows=3)
    assert [(row["number"], row["first_ns"], row["slice_ns"]) for row in table.to_pylist()] == [(1, 5, 20 * MS)]
    assert [(row["architecture"], row["role"], row["try"]) for row in names] == [("dsbs", "production", 1)]


def test_long_windows_have_longer_slices_so_that_their_number_is_bounded() -> None:
    (row,) = looked_at(3_600_000 * MS)[1].to_pylist()
    assert row["slice_ns"] == 12_000 * MS


def test_rate_over_time_is_told_at_the_middle_of_a_slice() -> None:
    rows = [{"place": 0, "slice": 2, "slice_ns": 20 * MS, "messages": 500}]
    assert latency.over_time(rows, [{"cell": "c"}]) == [
        {"cell": "c", "slice": 2, "rps": pytest.approx(25_000), "at_s": pytest.approx(0.05)}
    ]


@pytest.mark.java
def test_rate_over_time_leaves_out_the_slice_that_the_end_cuts(spark: SparkSession, tmp_path: Path) -> None:
    made = MadeTrial("dsbs", production_s=0.35, consumption_s=29.95, rows=70, messages=70_000)
    other = MadeTrial("dsbs", production_s=0.35, batch_size=1)
    records = load.load(spark, made_records.write(tmp_path, [made, other]))
    first = made_records.START_NS
    table = pa.table({
        "trial_id": [made.trial_id], "role": ["production"], "number": pa.array([1], pa.int32()),
        "place": pa.array([0], pa.int32()), "first_ns": [first], "last_ns": [first + 350 * MS], "slice_ns": [100 * MS],
    })  # fmt: skip
    rows = latency.slices(records.requests, spark.createDataFrame(table)).collect()
    assert sorted(row["slice"] for row in rows) == [0, 1, 2]
    assert all(row.messages == pytest.approx(20_000, rel=0.1) for row in rows)
