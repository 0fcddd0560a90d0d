from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest

from analysis import pipeline
from analysis.measures import paper
from tests import made_findings, made_records
from tests.made_records import MadeTrial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


@pytest.mark.java
@pytest.mark.parametrize("table", ["size_sweep", "batch_sweep"])
def test_every_published_number_comes_out_of_raw_records_again(spark: SparkSession, tmp_path: Path, table: str) -> None:
    found = pipeline.findings(spark, made_records.write(tmp_path, made_from(table)), lambda step: None)
    axes = ("architecture", "message_size", "batch_size", "mode", "role")
    computed: dict[Cell, dict[tuple[str, str], int]] = {}
    tries = [(row, str(row["try"]), metric, row[metric]) for row in found.windows for metric in ("rps", "kbps")]
    means = [(row, "avg", row["metric"], row["mean"]) for row in found.cells]
    for row, number, metric, value in (*tries, *means):
        cell = (table, *(row[axis] for axis in axes))
        computed.setdefault(cell, {})[metric, number] = half_up(value)
    assert computed == {cell: printed for cell, printed in published().items() if cell[0] == table}


NUMBERS: Final = paper.published()


@pytest.fixture(scope="module")
def findings() -> dict[str, dict[str, Any]]:
    return by_finding(paper.audit(NUMBERS))


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


def changed(row: dict[str, Any]) -> dict[str, Any]:
    """With the advantage moved to batch size 1, and one average in KB/s falsified."""
    value = row["value"] / (10 if (row["architecture"], row["batch_size"]) == ("zookeeper", 1) else 1)
    cell = (row["message_size"], row["mode"], row["role"], row["architecture"], row["try"], row["metric"])
    return {**row, "value": value + 5 * (cell == (8, "split", "production", "dsbs", "avg", "kbps"))}


def test_audit_says_what_the_numbers_say_not_what_was_written_down() -> None:
    """Without the altered cell, with an average falsified and the advantage moved, the audit says so."""
    altered = ("batch_sweep", "dsbs", 20, "consumption")
    names = ("table", "architecture", "batch_size", "role")
    numbers = [changed(row) for row in NUMBERS if tuple(row[name] for name in names) != altered]
    found = by_finding(paper.audit(numbers))
    assert "one cell, two published results" not in found
    assert "the advantage is not where its cause should show most" not in found
    assert "1 averages and 1 pairs are off" in found["averages or kilobytes do not follow from the tries"]["evidence"]


def ratio(size: int, batch: int, mode: str, role: str, **more: Any) -> dict[str, Any]:
    return {
        "message_size": size, "batch_size": batch, "mode": mode, "role": role, "others": "", "architecture": "dsbs",
        "against": "zookeeper", "n": 3, "ratio": 2.0, "low": 1.9, "high": 2.2, "verdict": "faster", **more,
    }  # fmt: skip


def every_cell(**more: Any) -> list[dict[str, Any]]:
    cells = {(row["message_size"], row["batch_size"], row["mode"], row["role"]) for row in NUMBERS}
    return [ratio(*cell, **more) for cell in cells]


def test_a_cell_that_stands_in_both_tables_is_compared_once() -> None:
    rows = paper.compared(NUMBERS, every_cell())
    assert len(paper.averages(NUMBERS)) == 32
    assert len(rows) == 28
    assert sum("," in row["table"] for row in rows) == 4


def test_direction_is_told_where_the_published_tries_do_not_overlap_and_agree() -> None:
    directions = [row["direction"] for row in paper.compared(NUMBERS, every_cell())]
    assert {name: directions.count(name) for name in set(directions)} == {
        "yes": 18, paper.OVERLAP: 9, paper.TWICE: 1,
    }  # fmt: skip


def test_published_ratio_is_inside_or_outside_only_of_an_interval_that_decides() -> None:
    for more, inside in (
        ({}, {True, False}),
        ({"low": 0.1, "high": 9.0, "verdict": "undecided"}, {None}),
        ({"low": None, "high": None, "verdict": "one try"}, {None}),
    ):
        assert {row["inside"] for row in paper.compared(NUMBERS, every_cell(**more))} == inside


def test_ratio_of_the_other_direction_is_turned() -> None:
    turned = ratio(8, 20, "split", "production", architecture="zookeeper", against="dsbs", ratio=0.5, low=0.4, high=0.8)
    (row,) = paper.compared(NUMBERS, [turned | {"verdict": "slower"}])
    assert (row["ratio"], row["low"], row["high"], row["hypothesis"]) == (2.0, 1.25, 2.5, "holds")


def test_other_pairs_other_axes_and_ratios_without_a_number_are_not_compared() -> None:
    cell = (8, 20, "split", "production")
    rows = [
        ratio(*cell, against="static"),
        ratio(*cell, others="brokers=5"),
        ratio(*cell, ratio=None, verdict="too few"),
    ]
    assert paper.compared(NUMBERS, rows) == []


def test_published_ratio_stands_beside_the_measured_one() -> None:
    found = made_findings.of(
        MadeTrial(name, window * (1 + number / 50), 1.0, 8, 20, "split", try_=number)
        for name, window in (("dsbs", 1.0), ("zookeeper", 2.0))
        for number in (1, 2, 3)
    )
    rows = {row["role"]: row for row in found.paper_comparison}
    production, consumption = rows["production"], rows["consumption"]
    assert production["published"] == pytest.approx(177_949 / 83_750, rel=0.01)
    assert (production["ratio"], production["direction"], production["hypothesis"]) == (
        pytest.approx(2.0), "yes", "holds",
    )  # fmt: skip
    assert (production["inside"], consumption["hypothesis"]) == (False, "open: undecided")
