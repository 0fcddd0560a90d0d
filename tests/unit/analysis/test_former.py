"""Records of version 2: their columns are known, and what they lack is filled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from analysis import former, load
from tests import former_records
from tests.made_records import MadeTrial
from workloads import results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_columns_are_those_that_runs_wrote() -> None:
    assert former.schema(results.TRIALS, results.trial_schema()).equals(former_records.TRIALS)
    assert former.schema(results.REQUESTS, results.request_schema()).equals(former_records.REQUESTS)
    assert former.schema(results.LATENCY, results.latency_schema()).equals(former_records.LATENCY)


def test_first_folders_named_no_system() -> None:
    names = former.without_system(former_records.TRIALS).names
    assert {*former_records.TRIALS.names} - {*names} == {"system"}


@pytest.mark.java
def test_what_records_lack_is_filled_wherever_they_lie(spark: SparkSession, tmp_path: Path) -> None:
    streaming = MadeTrial("static", mode="streaming")
    folder = former_records.write(tmp_path, [MadeTrial("static"), MadeTrial("dsbs"), streaming])
    path = folder / results.TRIALS / results.file_name(MadeTrial("dsbs").trial_id)
    pq.write_table(pq.read_table(path).drop_columns(["system"]), path)
    load.check_elsewhere(spark, folder.as_uri())
    for place in (folder, folder.as_uri()):
        records = load.load(spark, place)
        trials = {row.trial_id: row.asDict(recursive=True) for row in records.trials.collect()}
        assert {(row["system"], row["settings"], row["in_flight"]) for row in trials.values()} == {
            ("brokerlab", None, None)
        }
        windows = {
            name: [(w["number"], w["window"], w["round"], w["attempt"]) for w in row["windows"]]
            for name, row in trials.items()
        }
        assert windows[MadeTrial("dsbs").trial_id] == [(1, name, 1, 1) for name in ("production", "consumption")]
        assert windows[streaming.trial_id] == [(1, "both", 1, 1)]
        unknown = ("place", "opened_ns", "closed_ns", "cores", "foreign_cores")
        assert {w[name] for row in trials.values() for w in row["windows"] for name in unknown} == {None}
        assert {entry["number"] for row in trials.values() for entry in row["resources"]} == {1}
        assert {row.window_number for row in records.requests.collect()} == {1}
        assert {row.window_number for row in records.latency.collect()} == {1}
        assert {*records.trials.columns} == {*results.trial_schema().names}
