"""Two runs, or a run and the paper, compared in the session that all these tests share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis import compare, publish
from analysis.errors import InputError
from tests import made_records
from tests.made_records import MadeTrial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java


def run(folder: Path, others: str = "") -> Path:
    """Three tries of two architectures in one published cell."""
    made = [
        MadeTrial(name, window_s * (1 + number / 100), 0.4, 8, 20, "split", others, number)
        for name, window_s in (("zookeeper", 1.0), ("dsbs", 0.5))
        for number in (1, 2, 3)
    ]
    return made_records.write(folder, made)


def test_run_is_compared_with_the_published_tries(spark: SparkSession, tmp_path: Path) -> None:
    mine = run(tmp_path / "mine")
    found = compare.found(spark, [mine], compare.names([mine], paper=True), paper=True)
    assert any("the paper's machines" in warning for warning in found.warnings)
    rows = {(row["architecture"], row["role"]): row for row in found.rates}
    assert set(rows) == {(name, role) for name in ("dsbs", "zookeeper") for role in ("production", "consumption")}
    assert {(row["n_first"], row["n_second"], row["others"]) for row in found.rates} == {(4, 3, "size_sweep")}
    assert rows["zookeeper", "production"]["first"] == pytest.approx(83_750, rel=0.02)
    text = publish.publish_comparison(publish.made(tmp_path / "out"), found)
    assert "| Published in |" in text
    assert "zookeeper: of 2 rates, mine is" in text


def test_runs_without_a_common_cell_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    folders = [run(tmp_path / "a"), run(tmp_path / "b", others="brokers=5")]
    with pytest.raises(InputError, match="a and b have no cell and architecture in common"):
        compare.found(spark, folders, compare.names(folders, paper=False), paper=False)


def test_folders_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    assert compare.names([tmp_path / "x" / "run", tmp_path / "y" / "run"], paper=False) == ("run (A)", "run (B)")
