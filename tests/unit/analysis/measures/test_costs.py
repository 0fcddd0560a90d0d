from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis import load
from analysis.findings import Findings
from analysis.measures import costs, rates
from tests import made_records
from tests.made_records import MadeTrial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java


def test_coordination_is_counted_for_a_thousand_messages(analysed: Findings) -> None:
    rows = [row for row in analysed.coordination if row["architecture"] == "zookeeper"]
    assert {row["operation"] for row in rows} == {"lookup", "commit"}
    for row in rows:
        requests = 1000 / row["batch_size"]
        expected = (requests, requests * 100, requests * 0.5)
        assert (row["operations"], row["bytes"], row["wait_ms"]) == pytest.approx(expected)


def test_wait_without_a_message_is_coordination_too(spark: SparkSession, tmp_path: Path) -> None:
    own = {"node": "broker-1", "window": "production", "operation": "commit", "count": 0, "bytes": 0, "wait_s": 0.03}
    made = [MadeTrial("dsbs", columns={"coordination": [own]})]
    records = load.load(spark, made_records.write(tmp_path, made))
    (row,) = costs.coordination(records.trials, rates.rates(records.trials, records.requests)).collect()
    assert (row.operation, row.operations, row.wait_ms) == ("commit", 0, pytest.approx(1.0))


def test_architecture_that_does_not_coordinate_has_no_row(analysed: Findings) -> None:
    assert "static" not in {row["architecture"] for row in analysed.coordination}


def test_processor_time_is_microseconds_a_message_by_window(analysed: Findings) -> None:
    rows = {
        (row["window"], row["process"]): row["cpu_us_per_message"]
        for row in analysed.resources
        if (row["batch_size"], row["architecture"]) == (1, "static")
    }
    expected = {"producer": 4.0, "consumer": 4.0, "broker": 1.0}
    assert rows == pytest.approx({
        **{("production", process): expected[process] for process in ("producer", "broker")},
        **{("consumption", process): expected[process] for process in ("consumer", "broker")},
        **{("both", process): expected[process] for process in ("producer", "consumer", "broker")},
    })  # fmt: skip
    assert {row["rss_max_mb"] for row in analysed.resources} == {64}


def test_what_a_process_does_not_count_stays_empty(analysed: Findings) -> None:
    rows = {row["process"]: row for row in analysed.resources if row["architecture"] == "zookeeper"}
    assert (rows["producer"]["coordination_cpu_us_per_message"], rows["producer"]["gc_pause_us_per_message"]) == (
        None,
        None,
    )
    assert rows["coordinator"]["sent_bytes_per_message"] is None
    assert rows["coordinator"]["gc_pause_us_per_message"] == pytest.approx(10_000 / 30_000)
    assert rows["broker"]["sent_bytes_per_message"] == rows["broker"]["message_size"]
    operations = 2 / rows["broker"]["batch_size"]
    assert rows["broker"]["coordination_cpu_us_per_message"] == pytest.approx(120 * operations)


def test_busiest_process_is_in_cores(analysed: Findings) -> None:
    (row,) = (
        row
        for row in analysed.resources
        if (row["architecture"], row["window"], row["process"]) == ("static", "production", "producer")
        and (row["message_size"], row["batch_size"], row["mode"]) == (32, 1, "split")
    )
    assert row["cores_busiest"] == pytest.approx(0.12 / (0.12 * 1.01), rel=1e-4)


def test_messages_a_request_are_counted_at_both_ends(analysed: Findings) -> None:
    assert {row["batch_size"]: row["broker"] for row in analysed.batches} == {1: 1.0, 20: 20.0}
    assert {row["batch_size"]: row["client"] for row in analysed.batches} == {1: 1.0, 20: 20.0}


def test_settings_that_all_architectures_share_are_equal(analysed: Findings) -> None:
    assert tuple(row["setting"] for row in analysed.equality) == costs.HELD_EQUAL
    assert {row["cells_that_differ"] for row in analysed.equality} == {0}
    assert {row["found"] for row in analysed.equality if row["setting"] == "rate"} == {"max"}


def test_setting_that_differs_between_architectures_is_told(spark: SparkSession, tmp_path: Path) -> None:
    made = [MadeTrial("static"), MadeTrial("dsbs", columns={"fsync": "always"})]
    rows = costs.equality(load.load(spark, made_records.write(tmp_path, made)).trials).collect()
    assert {row.setting: (row.found, row.cells_that_differ) for row in rows}["fsync"] == ("always, never", 1)


def test_swept_setting_is_equal_when_every_cell_is(spark: SparkSession, tmp_path: Path) -> None:
    made = [
        MadeTrial(name, others=f"brokers={count}", columns={"brokers": count})
        for name in ("static", "dsbs")
        for count in (3, 5)
    ]
    rows = costs.equality(load.load(spark, made_records.write(tmp_path, made)).trials).collect()
    assert {row.setting: (row.found, row.cells_that_differ) for row in rows}["brokers"] == ("3, 5", 0)
