"""Which of two ends of a trial is told: the client that lost its broker speaks, and the broker is why. Whatever ends a
trial ends its cluster too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from tests.unit.workloads.run.plans import plan
from workloads.clients.drivers.api import DriverError
from workloads.processes.process import ProcessFailed
from workloads.run import arm
from workloads.run.arm import ENDS, Arm
from workloads.trial.record import FAILED, TrialRecord
from workloads.trial.trial import TrialRun

PLAN = plan(trials="trials: {warmup: 0, seed: 1, timeout_s: 5}")
BLOCK = PLAN.blocks[0]


class Ends:
    """A trial under way on a cluster whose broker's end is noticed some turns of the loop later, or never."""

    def __init__(self, *, broker_ends: bool = False) -> None:
        self.record = TrialRecord(PLAN.trials[0])
        self.faults = self
        self.done: list[Any] = []
        self._broker_ends = broker_ends

    async def failed(self) -> ProcessFailed:
        if not self._broker_ends:
            await asyncio.Event().wait()
        for _ in range(50):
            await asyncio.sleep(0)
        return ProcessFailed("broker-1 was ended by SIGKILL")


async def fails() -> None:
    raise DriverError("unavailable: Socket closed")


async def never() -> None:
    await asyncio.Event().wait()


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Ends, Any], tuple[bool, int]]:
    """Do a step on an arm that was never started; whether it came to its end, and how often the arm was stopped."""
    stops = 0
    real = Arm.stop

    async def counted(own: Arm) -> None:
        nonlocal stops
        stops += 1
        await real(own)

    monkeypatch.setattr(Arm, "stop", counted)
    own = Arm(PLAN.architectures[0], BLOCK.fleets[0], PLAN, tmp_path, "block-1-static-1", list)

    def guarded(run: Ends, step: Any) -> tuple[bool, int]:
        return asyncio.run(own.guarded(cast("TrialRun", run), step)), stops

    return guarded


Guarded = Callable[[Ends, Any], tuple[bool, int]]


def test_the_end_of_a_broker_is_the_reason_though_its_client_speaks_first(stopped: Guarded) -> None:
    run = Ends(broker_ends=True)
    assert stopped(run, fails) == (False, 1)
    assert (run.record.verdict, run.record.reason) == (FAILED, "broker-1 was ended by SIGKILL")


def test_where_every_broker_lives_the_clients_reason_is_told(stopped: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arm, "END_NOTICED_WITHIN_S", 0.01)
    run = Ends()
    assert stopped(run, fails) == (False, 1)
    assert run.record.reason == "unavailable: Socket closed"


def test_the_end_of_a_broker_ends_a_step_that_hears_nothing_of_it(stopped: Guarded) -> None:
    run = Ends(broker_ends=True)
    assert stopped(run, never) == (False, 1)
    assert run.record.reason == "broker-1 was ended by SIGKILL"


def test_a_step_that_comes_to_its_end_leaves_the_cluster_up_and_its_time_is_counted(stopped: Guarded) -> None:
    run = Ends()
    run.record.spent_s = 2.0
    assert stopped(run, lambda: asyncio.sleep(0)) == (True, 0)
    assert (run.record.verdict, run.record.spent_s > 2.0) == ("", True)


def test_a_trial_has_its_time_in_all_its_steps_together(stopped: Guarded) -> None:
    run = Ends()
    run.record.spent_s, run.record.doing = PLAN.timeout_s, "connecting the producers"
    assert stopped(run, never) == (False, 1)
    assert run.record.reason == "not finished within 5 s; it was connecting the producers"


def test_what_no_trial_can_be_blamed_for_is_raised(stopped: Guarded) -> None:
    async def breaks() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stopped(Ends(), breaks)
    assert not issubclass(ZeroDivisionError, ENDS)


def test_an_arm_that_was_not_started_has_no_processes_and_may_be_stopped(tmp_path: Path) -> None:
    own = Arm(PLAN.architectures[0], BLOCK.fleets[0], PLAN, tmp_path, "block-1-static-1", list)
    assert (own.up, own.pids) == (False, [])
    asyncio.run(own.stop())
    assert list(tmp_path.iterdir()) == []
