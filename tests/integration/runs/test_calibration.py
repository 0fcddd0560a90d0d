"""Calibration trials: each closes one block and opens the next, and is measured anew where something came between."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.integration.runs.short_runs import Hooks, ids, rows, run_here
from tests.unit.workloads.run.plans import plan
from workloads.results import LATENCY, REQUESTS, TRIALS, file_name
from workloads.run.runner import Summary

PLAN = plan(
    experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: split}}",
    profile="{experiments: one, messages: 200, tries: 2}",
    trials="trials: {warmup: 0, seed: 1, timeout_s: 30}",
    calibrated=True,
)
CLOSES, OPENS = "calibration/1/close", "calibration/2/open"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    assert run_here(folder, PLAN) == Summary(valid=6, invalid=0, failed=0)
    return folder


def requests(folder: Path, trial: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / REQUESTS / file_name(trial)).to_pylist()
    return found


def of(trial: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Requests as those of another trial."""
    return [{**row, "trial_id": trial} for row in found]


def test_what_closes_a_block_opens_the_next_with_the_same_records(finished: Path) -> None:
    found = rows(finished)
    assert found.keys() == ids(PLAN)
    assert found[OPENS] == {**found[CLOSES], "trial_id": OPENS, "try": 2, "position": found[OPENS]["position"]}
    assert requests(finished, OPENS) == of(OPENS, requests(finished, CLOSES)) != []
    assert not (finished / "logs" / f"block-2-static-{found[OPENS]['position']}").exists(), "no cluster was started"


def test_the_two_calibrations_of_one_block_are_two(finished: Path) -> None:
    for block in (1, 2):
        opens, closes = f"calibration/{block}/open", f"calibration/{block}/close"
        assert requests(finished, closes) != of(closes, requests(finished, opens))


@pytest.mark.parametrize("missing", [(OPENS,), (CLOSES, OPENS), ("calibration/1/open", OPENS)])
def test_a_run_that_goes_on_measures_the_next_beginning_anew_unless_the_block_before_closed_just_now(
    finished: Path, tmp_path: Path, missing: tuple[str, ...]
) -> None:
    folder = tmp_path / "interrupted"
    shutil.copytree(finished, folder)
    for kind in (REQUESTS, LATENCY, TRIALS):
        for trial in missing:
            (folder / kind / file_name(trial)).unlink()
    hooks = Hooks()
    assert run_here(folder, PLAN, hooks) == Summary(valid=6, invalid=0, failed=0)
    assert [trial for trial, _ in hooks.ended if trial in ids(PLAN)] == list(missing)
    assert requests(folder, OPENS) != requests(finished, OPENS)
    closed_just_now = CLOSES in missing
    assert (requests(folder, OPENS) == of(OPENS, requests(folder, CLOSES))) is closed_just_now
