"""Records at an address that only Spark reads. Hadoop's viewfs stands for hdfs and s3a: a file system of another
scheme, with nothing that must be reached."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from analysis import load, publish
from analysis.errors import InputError
from tests import made_records
from tests.made_records import MadeTrial
from workloads import results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java
ADDRESS = "viewfs://runs/here"


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    """A run at ADDRESS and where it really lies."""
    folder = made_records.write(tmp_path / "run", [MadeTrial("static"), MadeTrial("dsbs")])
    spark.conf.set("fs.viewfs.mounttable.runs.link./here", folder.as_uri())
    spark.conf.set("fs.viewfs.impl.disable.cache", "true")  # each test has a folder of its own
    return folder


def test_good_records_are_read_as_from_a_folder(spark: SparkSession, folder: Path) -> None:
    load.check_elsewhere(spark, ADDRESS)
    there, here = load.load(spark, ADDRESS), load.load(spark, folder)
    assert sorted(there.trials.collect()) == sorted(here.trials.collect())
    assert there.requests.count() == here.requests.count() == 12
    assert there.latency.count() == here.latency.count() == 2


def test_manifest_is_read_and_may_be_missing(spark: SparkSession, folder: Path) -> None:
    assert publish.manifest(ADDRESS, spark) is None
    written = made_records.manifest(seed=2017)
    results.ResultsFolder(folder).write_manifest(written)
    assert publish.manifest(ADDRESS, spark) == written


def test_empty_address_and_missing_latencies(spark: SparkSession, folder: Path) -> None:
    for path in (folder / results.LATENCY).iterdir():
        path.unlink()
    (folder / results.LATENCY).rmdir()
    load.check_elsewhere(spark, ADDRESS)
    assert load.load(spark, ADDRESS).latency.count() == 0
    with pytest.raises(InputError, match="no raw records in viewfs://runs/here/nowhere/trials"):
        load.check_elsewhere(spark, f"{ADDRESS}/nowhere")


def test_another_spec_or_a_missing_column_is_refused(spark: SparkSession, folder: Path) -> None:
    made_records.write(folder, [MadeTrial("static", try_=2, columns={"spec_hash": "other"})])
    with pytest.raises(InputError, match="2 different specs are mixed"):
        load.check_elsewhere(spark, ADDRESS)
    for path in (folder / results.REQUESTS).iterdir():
        pq.write_table(pq.read_table(path).drop_columns(["sent_ns"]), path)
    with pytest.raises(InputError, match=r"requests has other columns \(sent_ns\)"):
        load.check_elsewhere(spark, ADDRESS)


def test_an_architecture_that_no_file_can_be_named_after_is_refused(spark: SparkSession, folder: Path) -> None:
    made_records.write(folder, [MadeTrial("../../../x", name="a trial")])
    with pytest.raises(InputError, match=r"cannot be of the architecture '\.\./\.\./\.\./x'"):
        load.check_elsewhere(spark, ADDRESS)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("results/latest", Path("results/latest")),
        ("file:///a%20b/run/", Path("/a b/run")),
        ("hdfs://node:9000/runs/1/", "hdfs://node:9000/runs/1"),
        ("s3a://bucket/run", "s3a://bucket/run"),
    ],
)
def test_places_are_folders_or_addresses(text: str, place: load.Place) -> None:
    assert load.place_of(text) == place


def test_file_address_of_another_machine_is_refused() -> None:
    with pytest.raises(InputError, match="another machine"):
        load.place_of("file://node/run")
