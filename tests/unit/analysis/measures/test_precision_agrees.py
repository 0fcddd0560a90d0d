"""The statistic by which a run shares out its budget is computed by the runner, and is the report's."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from analysis.findings import Findings
from analysis.statistics.intervals import interval
from tests import made_findings
from workloads.results import REQUESTS, TRIALS
from workloads.run.precision import half_width, rates_of


def test_the_interval_of_a_ratio_is_the_reports() -> None:
    generator = random.Random(9)
    for blocks in (2, 3, 5, 100):
        logs = [generator.gauss(0.5, 0.05) for _ in range(blocks)]
        row = interval(logs).columns()
        assert math.log(row["high"] / row["ratio"]) == pytest.approx(half_width(logs), rel=1e-9)
        assert math.log(row["ratio"] / row["low"]) == pytest.approx(half_width(logs), rel=1e-9)


def test_the_rates_of_a_trial_are_the_reports(found: Findings, run_folder: Path) -> None:
    """Of windows of which the report drops no beginning."""
    clients = {role: client for client, role in made_findings.ROLES.items()}
    expected = {
        (row["trial_id"], clients[row["role"]], row["round"]): row["messages"] / row["window_s"]
        for row in found.windows
        if row["used"]
    }
    mine: dict[tuple[str, str, int], float] = {}
    for path in (run_folder / TRIALS).glob("*.parquet"):
        (trial,) = pq.read_table(path).to_pylist()
        rates = rates_of(trial["windows"], pq.read_table(run_folder / REQUESTS / path.name))
        mine |= {(trial["trial_id"], *key): rate for key, rate in rates.items()}
    assert mine == {key: pytest.approx(rate) for key, rate in expected.items()}
