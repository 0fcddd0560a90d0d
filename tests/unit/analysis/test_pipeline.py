"""Findings by Spark, and the made findings beside them that all tests of arrangement rest on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis import pipeline
from analysis.errors import EngineError
from analysis.findings import Findings
from tests import former_records, made_findings, made_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java


def differences(found: Findings, made: Findings) -> list[str]:
    """Where made findings are not those of Spark; numbers may differ by rounding."""
    told = list(_differ(dict(found.protocol), dict(made.protocol)))
    for field in dataclasses.fields(Findings):
        here, there = getattr(found, field.name), getattr(made, field.name)
        if isinstance(here, tuple):
            if len(here) != len(there):
                told.append(f"{field.name}: {len(here)} rows and {len(there)}")
            told += [f"{field.name}: {text}" for pair in zip(here, there, strict=False) for text in _differ(*pair)]
    return told


def _differ(here: dict[str, Any], there: dict[str, Any]) -> Iterable[str]:
    if here.keys() != there.keys():
        yield f"columns {sorted(here.keys() ^ there.keys())}"
    for name in here.keys() & there.keys():
        one, other = here[name], there[name]
        numbers = isinstance(one, float) and isinstance(other, int | float)
        if not (other == pytest.approx(one, rel=1e-4, abs=1e-9) if numbers else one == other):
            yield f"{name} {one!r} and {other!r} of {here}"


def test_made_findings_are_those_of_spark(analysed: Findings) -> None:
    assert differences(analysed, made_findings.small()) == []
    assert analysed.over_time


def test_windows_of_rounds_and_loads_are_found_as_they_were_made(spark: SparkSession, tmp_path: Path) -> None:
    folder = made_records.write(tmp_path, made_records.rounds_run())
    found = pipeline.findings(spark, folder, lambda step: None)
    assert differences(found, made_findings.rounds()) == []
    assert found.load
    assert found.zero


def test_records_of_version_2_have_one_round_and_their_latencies(spark: SparkSession, tmp_path: Path) -> None:
    folder = former_records.write(tmp_path, [*former_records.calibrations(3, spread=1.2), *made_records.small_run()])
    found = pipeline.findings(spark, folder, lambda step: None)
    assert found.protocol["schema_version"] == 2
    assert (found.protocol["rounds"], found.protocol["unknown"]) == ([1, 1], found.protocol["windows"])
    assert {row["noisy"] for row in found.trials} == {True}
    assert {row["kind"] for row in found.latency} == {"producer request", "consumer request", "end to end"}
    now = made_findings.small()
    own = ("ratio", "low", "high", "verdict", "rounds")
    assert [[row[name] for name in own] for row in found.ratios] == [[row[name] for name in own] for row in now.ratios]
    assert len(found.coordination) == len(now.coordination)


def test_steps_are_said_in_their_order(spark: SparkSession, run_folder: Path) -> None:
    said: list[str] = []
    pipeline.findings(spark, run_folder, said.append)
    assert said == [
        *("reading the records", "rates from requests", "costs", "statistics", "latency", "the published numbers"),
    ]


def test_what_a_system_cannot_give_stays_empty_all_the_way(spark: SparkSession, tmp_path: Path) -> None:
    folder = made_records.write(tmp_path, made_records.foreign_run())
    found = pipeline.findings(spark, folder, lambda step: None)
    assert differences(found, made_findings.foreign()) == []
    foreign = [row for row in found.trials if row["architecture"] == "kafka-kraft"]
    assert {(row["system"], row["stored"], row["verdict"]) for row in foreign} == {("kafka", None, "valid")}
    assert "kafka-kraft" not in {row["architecture"] for row in found.coordination}
    assert "kafka-kraft" not in {row["architecture"] for row in found.pooled if row["metric"] == "cpu_us"}
    assert found.counting == found.beside_control == {"dsbs", "static"}


def test_an_error_of_sparks_is_one_line(spark: SparkSession) -> None:
    with pytest.raises(EngineError, match=r"^Spark failed: [^\n]*$"), pipeline.spark_errors():
        spark.sql("select nothing_of_this_name").collect()
