"""Which of two ends of a trial is told: the client that lost its broker speaks, and the broker is why. How long trials
become."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from tests.unit.workloads.run.plans import plan
from workloads.clients.drivers.api import DriverError
from workloads.errors import UserError
from workloads.processes.process import ProcessFailed
from workloads.results import SCHEMA_VERSION, ResultsFolder
from workloads.run.progress import PlainProgress
from workloads.run.runner import Run, _found_size
from workloads.trial.record import Size, TrialRecord
from workloads.trial.trial import TrialRun

PLAN = plan()


class Ends:
    """A trial that fails at once, on a cluster whose broker's end is noticed some turns of the loop later, or never."""

    def __init__(self, *, broker_ends: bool) -> None:
        self.faults = self
        self._broker_ends = broker_ends

    async def run(self) -> None:
        raise DriverError("unavailable: Socket closed")

    async def failed(self) -> ProcessFailed:
        if not self._broker_ends:
            await asyncio.Event().wait()
        for _ in range(50):
            await asyncio.sleep(0)
        return ProcessFailed("broker-1 was ended by SIGKILL")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    folder = ResultsFolder(tmp_path)
    folder.write_manifest({
        "schema_version": SCHEMA_VERSION, "spec_hash": PLAN.spec_hash, "profile": "steady", "started": "",
        "ended": None, "planned": [], "sizes": {},
    })  # fmt: skip
    return Run(PLAN, folder, PlainProgress())


def test_nothing_is_begun_where_something_lies_and_no_manifest(tmp_path: Path) -> None:
    (tmp_path / "trials").mkdir()
    with pytest.raises(UserError, match=r"is not empty \(trials\)"):
        Run(PLAN, ResultsFolder(tmp_path), PlainProgress())


def watched(run: Run, ends: Ends) -> Any:
    return asyncio.run(run._watched(cast("TrialRun", ends)))


def test_the_end_of_a_broker_is_the_reason_though_its_client_speaks_first(run: Run) -> None:
    with pytest.raises(ProcessFailed, match="broker-1 was ended by SIGKILL"):
        watched(run, Ends(broker_ends=True))


def test_where_every_broker_lives_the_clients_reason_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workloads.run.runner.END_NOTICED_WITHIN_S", 0.01)
    with pytest.raises(DriverError, match="Socket closed"):
        watched(run, Ends(broker_ends=False))


def sized(*, produced: int, consumed: int) -> Size:
    """What a warm-up of 0.4 s says for a trial of batches of 10 in three partitions."""
    timed = plan(
        experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: streaming}}",
        profile="{experiments: one, duration_s: 0.8, tries: 1}",
    )
    (sizing,) = [trial for trial in timed.trials if trial.sizes is not None]
    record = TrialRecord(sizing)
    record.produced = [{"acknowledged": produced, "window_s": 0.4}]
    record.consumed = [{"consumed": consumed, "window_s": 0.4}]
    return _found_size(record)


def test_each_end_is_as_long_as_the_rates_of_its_warm_up_say() -> None:
    assert sized(produced=40_000, consumed=4_000) == Size(messages=80_000, to_consume=8_000)


def test_consumers_that_got_nothing_in_the_warm_up_are_to_get_some_batches_of_each_partition() -> None:
    assert sized(produced=40_000, consumed=10) == Size(messages=80_000, to_consume=300)


def test_nobody_is_to_consume_more_than_is_sent() -> None:
    assert sized(produced=40, consumed=40) == Size(messages=1_000, to_consume=300)
    assert sized(produced=40_000, consumed=400_000).to_consume == sized(produced=40_000, consumed=400_000).messages


def test_warm_ups_that_find_lengths_take_the_place_of_the_last_of_the_others_alone(tmp_path: Path) -> None:
    """Else a cluster that warms for long would be sized when it is cold."""
    timed = plan(profile="{experiments: one, duration_s: 0.8, tries: 1, warmup: 3}")
    (leg,) = timed.blocks[0].legs
    left = Run(timed, ResultsFolder(tmp_path), PlainProgress())._left_of(leg)
    kinds = ["sizing" if trial.sizes else trial.kind for trial in left]
    assert kinds == ["warmup"] * 2 + ["sizing"] * 4 + ["measured"] * 4
