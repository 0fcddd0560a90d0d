"""The script is carried out on real processes, at the moments that it names, and an end that it asked for is none that
fails a trial."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from tests.contract.backend import asynchronous
from workloads.clients.drivers.api import DriverError
from workloads.errors import BrokerlabError
from workloads.faults.injection import Injection, as_history
from workloads.faults.script import parse
from workloads.processes.liveness import Liveness
from workloads.processes.process import Process
from workloads.results import history_schema
from workloads.systems.api import System
from workloads.systems.nodes import Nodes, NoEffect

WITHIN_S = 20.0
SERVES = "import sys; print('serves', flush=True); sys.stdin.read()"


class Sleepers:
    """What the script needs of a system: processes by name, and one of them started again."""

    def __init__(self, logs: Path) -> None:
        self.nodes = Nodes()
        self._logs = logs
        self.starting = asyncio.Event()
        self.broken = False

    async def start_again(self, name: str) -> None:
        if self.broken:
            raise BrokerlabError("it does not start")
        self.starting.set()
        command = [sys.executable, "-S", "-c", SERVES]
        process = await Process.start(name, command, self._logs / f"{name}.log", spoken_with=True)
        self.nodes.put(name, "broker", process)
        await process.read_line()


@asynccontextmanager
async def injected(folder: Path, *steps: Mapping[str, Any]) -> AsyncIterator[tuple[Injection, Sleepers]]:
    system = Sleepers(folder)
    try:
        for name in ("broker-1", "broker-2"):
            await system.start_again(name)
        async with asyncio.timeout(WITHIN_S):
            yield Injection(parse(steps), cast("System", system)), system
    finally:
        await system.nodes.stop()


def step(at: str, do: str, node: str = "broker-1", **moment: float) -> dict[str, Any]:
    return {"at": at, "do": do, "node": node, **moment}


@asynchronous
async def test_steps_of_a_stage_are_done_before_anything_else_of_it_and_in_their_order(tmp_path: Path) -> None:
    async with injected(tmp_path, step("join", "pause"), step("audit", "kill"), step("join", "resume")) as (faults, _):
        await faults.begin("topic")
        assert faults.done == []
        await faults.begin("join")
        assert [done.step.do for done in faults.done] == ["pause", "resume"]
        assert [str(left) for left in faults.left()] == ["kill broker-1 (audit)"]
        first, second = faults.done
        assert first.began_ns <= first.ended_ns <= second.began_ns <= second.ended_ns


@asynchronous
async def test_each_verb_does_what_it_says(tmp_path: Path) -> None:
    async with injected(tmp_path, *(step(stage, do) for stage, do in VERBS_AT.items())) as (faults, system):
        found = {}
        for stage, do in VERBS_AT.items():
            before = system.nodes["broker-1"].pid
            await faults.begin(stage)
            now = system.nodes["broker-1"]
            found[do] = (now.liveness, now.pid == before)
        assert found == {
            "pause": (Liveness.PAUSED, True),
            "resume": (Liveness.RUNNING, True),
            "kill": (Liveness.GONE, True),
            "start": (Liveness.RUNNING, False),
            "terminate": (Liveness.GONE, True),
        }
        assert faults.down == {"broker-1"}


VERBS_AT = {"topic": "pause", "connect": "resume", "join": "kill", "production": "start", "audit": "terminate"}


@asynchronous
async def test_a_step_waits_for_its_acknowledgements(tmp_path: Path) -> None:
    async with injected(tmp_path, step("both", "kill", after_acknowledged=100)) as (faults, system):
        async with faults.during("both"):
            faults.acknowledged(99)
            await asyncio.sleep(0)
            assert system.nodes["broker-1"].liveness is Liveness.RUNNING
            faults.acknowledged(120)
            await system.nodes["broker-1"].ended()
        assert faults.left() == []


@asynchronous
async def test_steps_in_time_are_done_by_their_time_and_not_by_their_line(tmp_path: Path) -> None:
    steps = (step("both", "kill", after_s=0.02), step("both", "pause", after_s=0.01))
    async with injected(tmp_path, *steps) as (faults, system):
        async with faults.during("both"):
            await system.nodes["broker-1"].ended()
        assert [done.step.do for done in faults.done] == ["pause", "kill"]


@asynchronous
async def test_what_has_not_come_about_by_the_rounds_end_is_left(tmp_path: Path) -> None:
    steps = (step("both", "kill", after_s=3600), step("both", "kill", after_acknowledged=5))
    async with injected(tmp_path, *steps) as (faults, system):
        async with faults.during("both"):
            await asyncio.sleep(0)
        assert len(faults.left()) == 2
        assert system.nodes["broker-1"].running


@asynchronous
async def test_a_step_under_way_comes_to_its_end_before_the_round_does(tmp_path: Path) -> None:
    steps = (step("topic", "kill"), step("both", "start", after_s=0))
    async with injected(tmp_path, *steps) as (faults, system):
        await faults.begin("topic")
        system.starting.clear()
        async with faults.during("both"):
            await system.starting.wait()
        assert faults.left() == []
        assert system.nodes["broker-1"].running


@asynchronous
async def test_a_node_that_runs_is_not_started_beside_itself(tmp_path: Path) -> None:
    async with injected(tmp_path, step("topic", "start")) as (faults, system):
        before = system.nodes["broker-1"]
        with pytest.raises(NoEffect, match="broker-1 is not started again: the script has not ended it"):
            await faults.begin("topic")
        assert system.nodes["broker-1"] is before


@asynchronous
async def test_a_step_that_fails_ends_the_round_with_its_error(tmp_path: Path) -> None:
    steps = (step("topic", "kill"), step("both", "start", after_s=0))
    async with injected(tmp_path, *steps) as (faults, system):
        await faults.begin("topic")
        system.broken = True
        with pytest.raises(BrokerlabError, match="it does not start"):
            async with faults.during("both"):
                await asyncio.Event().wait()
        assert len(faults.left()) == 1


@asynchronous
async def test_what_fails_in_a_round_is_told_as_it_is(tmp_path: Path) -> None:
    async with injected(tmp_path, step("both", "kill", after_s=3600)) as (faults, _):
        with pytest.raises(DriverError, match="unavailable"):
            async with faults.during("both"):
                raise DriverError("unavailable")


@asynchronous
async def test_an_end_that_the_script_asked_for_fails_nothing_and_any_other_does(tmp_path: Path) -> None:
    async with injected(tmp_path, step("topic", "kill"), step("join", "start")) as (faults, system):
        watch = asyncio.create_task(faults.failed())
        await asyncio.sleep(0)
        await faults.begin("topic")
        await faults.begin("join")
        assert not watch.done()
        assert faults.down == set()
        system.nodes["broker-1"].kill()
        assert str(await watch).startswith("broker-1 was ended by SIGKILL")


@asynchronous
async def test_the_end_of_a_node_is_seen_while_another_is_down(tmp_path: Path) -> None:
    async with injected(tmp_path, step("topic", "terminate")) as (faults, system):
        watch = asyncio.create_task(faults.failed())
        await faults.begin("topic")
        system.nodes["broker-2"].kill()
        assert str(await watch).startswith("broker-2 was ended by SIGKILL")


@asynchronous
async def test_nodes_that_were_ended_since_a_moment_are_known(tmp_path: Path) -> None:
    steps = (step("topic", "kill"), step("join", "pause", "broker-2"), step("audit", "kill", "broker-2"))
    async with injected(tmp_path, *steps) as (faults, _):
        await faults.begin("topic")
        await faults.begin("join")
        (_, paused) = faults.done
        assert faults.ended_since(0) == {"broker-1"}
        assert faults.ended_since(paused.began_ns) == set()
        await faults.begin("audit")
        assert faults.ended_since(paused.began_ns) == {"broker-2"}


@asynchronous
async def test_steps_are_rows_of_the_history(tmp_path: Path) -> None:
    async with injected(tmp_path, step("join", "kill")) as (faults, _):
        await faults.begin("join")
        table = as_history(faults.done, "cell/static/1")
        assert table.schema.equals(history_schema())
        (row,) = table.to_pylist()
        assert (row["role"], row["operation"], row["detail"], row["messages"]) == ("script", "kill", "broker-1", 0)
        assert (row["invoked_ns"], row["done_ns"]) == (faults.done[0].began_ns, faults.done[0].ended_ns)
