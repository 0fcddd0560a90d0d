"""The statistic by which a run stops is computed by the runner, and is the report's."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from analysis.findings import Findings
from analysis.statistics.intervals import interval
from tests import made_findings
from workloads.results import REQUESTS
from workloads.run.precision import rates_of, ratio_interval


def test_the_interval_of_a_ratio_is_the_reports() -> None:
    generator = random.Random(9)
    for blocks in (2, 3, 5, 100):
        logs = [generator.gauss(0.5, 0.05) for _ in range(blocks)]
        row = interval(logs).columns()
        assert row["high"] / row["ratio"] - 1 == pytest.approx(ratio_interval(logs), rel=1e-9)
        assert row["ratio"] / row["low"] - 1 == pytest.approx(ratio_interval(logs), rel=1e-9)


def test_the_rates_of_a_trial_are_the_reports(found: Findings, run_folder: Path) -> None:
    clients = {role: client for client, role in made_findings.ROLES.items()}
    expected: dict[str, dict[str, float]] = {}
    for row in found.trials:
        rate = row["messages_done"] / row["window_s"]
        expected.setdefault(row["trial_id"], {})[clients[row["role"]]] = rate
    tables = [pq.read_table(path) for path in (run_folder / REQUESTS).glob("*.parquet")]
    assert {table.column("trial_id")[0].as_py(): rates_of(table) for table in tables} == {
        trial: pytest.approx(rates) for trial, rates in expected.items()
    }
