"""A cluster with its clients as a fleet holds it: all its processes are known, and nothing of it is left behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.contract.backend import asynchronous
from tests.integration.processes.running import alive, command_of
from tests.integration.runs.one_arm import arm_of, running, trial_on
from workloads.trial.record import FAILED


@asynchronous
async def test_an_arm_knows_its_brokers_and_clients_and_leaves_none_of_them(tmp_path: Path) -> None:
    async with running(tmp_path) as arm:
        pids = arm.pids
        commands = [command_of(pid) for pid in pids]
        assert sum("workloads.clients.client" in command for command in commands) == 3
        assert sum("broker-" in command and "json" in command for command in commands) == 3
        assert len(pids) == 6
        assert all(map(alive, pids))
    assert not arm.up
    assert not [pid for pid in pids if alive(pid)]
    assert not (tmp_path / "work" / "block-1-static-1").exists()


@asynchronous
async def test_an_arm_that_is_started_again_keeps_the_logs_of_its_first_cluster(tmp_path: Path) -> None:
    arm = arm_of(tmp_path)
    for _ in range(2):
        await arm.start()
        await arm.stop()
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["block-1-static-1", "block-1-static-1-2"]
    for folder in (tmp_path / "logs").iterdir():
        assert len(list(folder.glob("broker-*.log"))) == 3


@asynchronous
async def test_a_trial_whose_broker_dies_has_the_reason_and_takes_its_cluster_along(tmp_path: Path) -> None:
    async with running(tmp_path) as arm:
        run = trial_on(arm)
        pids = arm.pids

        async def waits() -> None:
            await run.open()
            run.system.nodes["broker-2"].kill()
            await asyncio.Event().wait()

        assert not await arm.guarded(run, waits)
        assert not arm.up
        assert (run.record.verdict, run.record.reason.split(";")[0]) == (FAILED, "broker-2 was ended by SIGKILL")
        assert not [pid for pid in pids if alive(pid)]
        await arm.start()
        fresh = trial_on(arm)
        assert await arm.guarded(fresh, fresh.open)
