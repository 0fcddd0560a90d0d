"""Which of two ends of a trial is told: the client that lost its broker speaks, and the broker is why."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from tests.unit.workloads.plans import plan
from workloads.cluster import Cluster
from workloads.drivers.api import DriverError
from workloads.processes import ProcessFailed
from workloads.progress import PlainProgress
from workloads.results import SCHEMA_VERSION, ResultsFolder
from workloads.runner import Run
from workloads.trial import TrialRun

PLAN = plan()


class Ends:
    """A trial that fails at once, on a cluster whose broker's end is noticed some turns of the loop later, or never."""

    stage = "producing"

    def __init__(self, *, broker_ends: bool) -> None:
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


def watched(run: Run, ends: Ends) -> Any:
    return asyncio.run(run._watched(cast("TrialRun", ends), cast("Cluster", ends)))


def test_the_end_of_a_broker_is_the_reason_though_its_client_speaks_first(run: Run) -> None:
    with pytest.raises(ProcessFailed, match="broker-1 was ended by SIGKILL"):
        watched(run, Ends(broker_ends=True))


def test_where_every_broker_lives_the_clients_reason_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workloads.runner.END_NOTICED_WITHIN_S", 0.01)
    with pytest.raises(DriverError, match="Socket closed"):
        watched(run, Ends(broker_ends=False))
