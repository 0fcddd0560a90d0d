from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as fn

from analysis import load
from analysis.measures import paper, rates, statistics
from tests import made_records
from tests.made_records import MadeTrial

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.java

ALTERED = "dsbs, 32 bytes, batch 20, split, consumption"
Cell = tuple[str, str, int, int, str, str]


def half_up(value: float) -> int:
    """As the paper rounds."""
    return math.floor(value + 0.5)


def published() -> dict[Cell, dict[tuple[str, str], int]]:
    """(table, architecture, size, batch, mode, role) -> (metric, try) -> printed number."""
    found: dict[Cell, dict[tuple[str, str], int]] = {}
    with paper.TABLES.open(newline="") as file:
        for row in csv.DictReader(file):
            size, batch = int(row["message_size"]), int(row["batch_size"])
            cell = (row["table"], row["architecture"], size, batch, row["mode"], row["role"])
            found.setdefault(cell, {})[row["metric"], row["try"]] = int(row["value"])
    return found


def rates_behind(size: int, printed: dict[tuple[str, str], int]) -> list[float]:
    """Four rates that round to every number printed of a cell: the tries', and their average's."""
    random = Random(2017)
    for _ in range(10_000):
        rates = [printed["rps", str(number)] + random.uniform(-0.49, 0.49) for number in range(1, 5)]
        every = [*enumerate(rates, 1), ("avg", sum(rates) / 4)]
        if all(
            (half_up(rate), half_up(rate * size / 1000)) == (printed["rps", str(n)], printed["kbps", str(n)])
            for n, rate in every
        ):
            return rates
    raise AssertionError(f"no rates round to {printed}")


def made_from(table: str) -> Iterator[MadeTrial]:
    """Raw records whose windows give the published rates: 30,000 messages a trial, as in the paper."""
    behind = {cell[1:]: rates_behind(cell[2], printed) for cell, printed in published().items() if cell[0] == table}
    for (name, size, batch, mode, role), printed in behind.items():
        if role == "production":
            consumed = behind[name, size, batch, mode, "consumption"]
            for number, (production, consumption) in enumerate(zip(printed, consumed, strict=True), 1):
                windows = made_records.window_s(production), made_records.window_s(consumption)
                yield MadeTrial(name, *windows, size, batch, mode, try_=number, rows=1)


@pytest.mark.parametrize("table", ["size_sweep", "batch_sweep"])
def test_every_published_number_comes_out_of_raw_records_again(spark: SparkSession, tmp_path: Path, table: str) -> None:
    records = load.load(spark, made_records.write(tmp_path, made_from(table)))
    values = rates.measured(rates.rates(records.trials, records.requests), "rps", "kbps").cache()
    axes = ("architecture", "message_size", "batch_size", "mode", "role")
    computed: dict[Cell, dict[tuple[str, str], int]] = {}
    averages = statistics.cells(values).withColumn("try", fn.lit("avg")).withColumnRenamed("mean", "value")
    for row in [*values.collect(), *averages.collect()]:
        cell = (table, *(row[axis] for axis in axes))
        computed.setdefault(cell, {})[row.metric, str(row["try"])] = half_up(row.value)
    assert computed == {cell: printed for cell, printed in published().items() if cell[0] == table}


@pytest.fixture(scope="module")
def numbers(spark: SparkSession) -> DataFrame:
    return paper.published(spark).cache()


@pytest.fixture(scope="module")
def findings(numbers: DataFrame) -> dict[str, dict[str, Any]]:
    return by_finding(paper.audit(numbers))


def by_finding(rows: Iterable[Any]) -> dict[str, dict[str, Any]]:
    return {row["finding"]: dict(row) for row in rows}


def test_audit_finds_the_cell_with_two_published_results(findings: dict[str, dict[str, Any]]) -> None:
    found = findings["one cell, two published results"]
    assert found["where"] == ALTERED
    assert "every one of 4 tries is 0.45 times" in found["evidence"]


def test_audit_finds_that_the_advantage_exists_at_batch_size_20_alone(findings: dict[str, dict[str, Any]]) -> None:
    evidence = {batch: findings[f"advantage of dsbs at batch size {batch}"]["evidence"] for batch in (1, 20, 50)}
    assert evidence[1] == "0.98 to 1.04 times"
    assert evidence[50] == "0.98 to 1.20 times"
    assert "1.71 to 4.03 without the cell published twice" in evidence[20]
    assert "the advantage is not where its cause should show most" in findings


def test_audit_computes_the_spread_that_the_paper_does_not_give(findings: dict[str, dict[str, Any]]) -> None:
    assert "1.7 % to 51.9 %" in findings["spread of the tries, which the paper does not give"]["evidence"]
    assert findings["ranges of the two architectures overlap"]["where"] == "10 of 32 cells"


def test_audit_checks_averages_and_kilobytes(findings: dict[str, dict[str, Any]]) -> None:
    assert "0 averages and 0 pairs" in findings["averages and kilobytes follow from the tries"]["evidence"]


def test_audit_says_what_the_numbers_say_not_what_was_written_down(numbers: DataFrame) -> None:
    """Without the altered cell, with an average falsified and the advantage moved, the audit says so."""
    altered = "table = 'batch_sweep' and architecture = 'dsbs' and batch_size = 20 and role = 'consumption'"
    one = "`try` = 'avg' and message_size = 8 and mode = 'split' and role = 'production' and architecture = 'dsbs'"
    changed = (
        numbers.where(f"not ({altered})")
        .withColumn("value", fn.expr("if(architecture = 'zookeeper' and batch_size = 1, value / 10, value)"))
        .withColumn("value", fn.expr(f"if({one} and metric = 'kbps', value + 5, value)"))
    )
    found = by_finding(paper.audit(changed))
    assert "one cell, two published results" not in found
    assert "the advantage is not where its cause should show most" not in found
    assert "1 averages and 1 pairs are off" in found["averages or kilobytes do not follow from the tries"]["evidence"]


def test_published_ratio_stands_beside_the_measured_one(
    spark: SparkSession, numbers: DataFrame, tmp_path: Path
) -> None:
    made = [
        MadeTrial(name, window * (1 + number / 50), 1.0, 8, 20, "split", try_=number)
        for name, window in (("dsbs", 1.0), ("zookeeper", 2.0))
        for number in (1, 2, 3)
    ]
    records = load.load(spark, made_records.write(tmp_path, made))
    values = rates.measured(rates.rates(records.trials, records.requests), "rps")
    rows = {row.role: row for row in paper.compared(numbers, values).collect()}
    production, consumption = rows["production"], rows["consumption"]
    assert production.published == pytest.approx(177_949 / 83_750, rel=0.01)
    assert (production.ratio, production.direction, production.hypothesis) == (pytest.approx(2.0), "yes", "holds")
    assert (production.inside, consumption.hypothesis) == (False, "open: not distinguishable")
