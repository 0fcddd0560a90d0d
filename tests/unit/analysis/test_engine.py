"""The queries by Spark, and those by plain Python that findings without a JVM rest on, give the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from analysis import load
from analysis.engine import TRIAL, Engine, SparkEngine
from analysis.measures.latency import groups
from analysis.measures.rates import gathered, of_valid, windows
from tests import made_findings, made_records
from tests.made_records import MadeTrial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java
MADE = [
    MadeTrial("zookeeper", 0.41, 0.43, messages=7_000, rows=70, rounds=2, lead_s=0.1),
    MadeTrial("dsbs", 0.5, 0.6, mode="streaming"),
    MadeTrial("static", mode="load", others="load=0.3", rounds=2, columns={"load": 0.3, "rate": 100.0}),
    MadeTrial("static", columns={"verdict": "failed", "reason": "it died", "windows": None, "coordination": None}),
]


@pytest.fixture(scope="module")
def engines(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Engine, Engine]:
    whole = MADE[:3]
    folder = made_records.write(tmp_path_factory.mktemp("engine"), whole)
    return SparkEngine(spark, load.load(spark, folder)), made_findings.engine(whole)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(sorted((name, str(value)) for name, value in row.items() if name in KEYS)))


KEYS = {"trial_id", "number", "window", "role", "slice", "process", "operation", "name", "kind", "place"}


@pytest.mark.parametrize("query", ["trials", "window_sums", "resource_sums", "coordination_sums", "request_sums"])
def test_sums_are_the_same(engines: tuple[Engine, Engine], query: str) -> None:
    here, there = (in_order(getattr(engine, query)()) for engine in engines)
    assert here
    assert here == [pytest.approx(row) if query == "resource_sums" else row for row in there]


def test_quantiles_of_the_windows_named_are_the_same(engines: tuple[Engine, Engine]) -> None:
    trials, sums = engines[1].trials(), gathered(engines[1].window_sums())
    names, named = groups(trials, of_valid(windows(trials, sums)))
    assert [row["others"] for row in names] == ["load=0.3"]
    here, there = (in_order(engine.quantiles(named)) for engine in engines)
    assert here
    assert here == there


def test_slices_of_the_windows_looked_at_are_the_same(engines: tuple[Engine, Engine]) -> None:
    first = made_records.START_NS
    table = pa.table({
        "trial_id": [MADE[0].trial_id] * 2,
        "role": ["production", "consumption"],
        "number": pa.array([1, 3], pa.int32()),
        "place": pa.array([0, 1], pa.int32()),
        "first_ns": [first, first + 900_000_000],
        "last_ns": [first + 400_000_000, first + 1_200_000_000],
        "slice_ns": [20_000_000] * 2,
    })  # fmt: skip
    here, there = (in_order(engine.slices(table)) for engine in engines)
    assert {row["place"] for row in here} == {0, 1}
    assert here == there


def test_a_failed_trial_without_windows_breaks_no_query(spark: SparkSession, tmp_path: Path) -> None:
    folder = made_records.write(tmp_path, MADE[3:])
    engine = SparkEngine(spark, load.load(spark, folder))
    (row,) = engine.trials()
    assert (tuple(row), row["windows"]) == (TRIAL, None)
    assert windows([row], gathered(engine.window_sums())) == []
    assert engine.coordination_sums() == []
