"""The processes of a system: who is among them, and what one of them can be made to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.contract.backend import asynchronous
from workloads.processes.liveness import Liveness
from workloads.processes.process import Process
from workloads.systems.nodes import Nodes, NoEffect

SLEEPS = ["sleep", "1000"]


@asynccontextmanager
async def started(folder: Path, *names: str) -> AsyncIterator[Nodes]:
    nodes = Nodes()
    try:
        for name in names:
            role = {"broker": "broker", "links": "network"}.get(name.partition("-")[0], "coordinator")
            process = await Process.start(name, SLEEPS, folder / f"{name}.log")
            nodes.put(name, role, process, here=name != "broker-2")
        yield nodes
    finally:
        carriers = [process for role, process in nodes.processes.values() if role == "network"]
        await nodes.stop()
        await asyncio.gather(*(process.stop() for process in carriers))


@asynchronous
async def test_brokers_come_first_by_number_and_what_carries_packets_cannot_be_named(tmp_path: Path) -> None:
    async with started(tmp_path, "zookeeper", "links", "broker-10", "broker-2") as nodes:
        assert list(nodes.processes) == ["broker-2", "broker-10", "zookeeper", "links"]
        assert nodes.names == ["broker-2", "broker-10", "zookeeper"]
        assert list(nodes.processes_here) == ["broker-10", "zookeeper", "links"]


@asynchronous
async def test_one_process_is_paused_resumed_killed_and_terminated_and_the_others_run_on(tmp_path: Path) -> None:
    async with started(tmp_path, "broker-1", "broker-2", "broker-3") as nodes:
        seen = []
        for done in (nodes.pause, nodes.resume):
            await done("broker-1")
            seen.append(nodes["broker-1"].liveness)
        assert seen == [Liveness.PAUSED, Liveness.RUNNING]
        await nodes.kill("broker-1")
        await nodes.terminate("broker-2")
        assert nodes["broker-1"].end == "was ended by SIGKILL"
        assert nodes["broker-2"].end == "was ended by SIGTERM"
        assert nodes["broker-3"].liveness is Liveness.RUNNING


@asynchronous
async def test_what_has_ended_cannot_be_made_to_stand_still(tmp_path: Path) -> None:
    async with started(tmp_path, "broker-1") as nodes:
        await nodes.kill("broker-1")
        with pytest.raises(NoEffect, match="broker-1 is not paused but gone"):
            await nodes.pause("broker-1")


@asynchronous
async def test_what_is_paused_hears_that_it_is_to_end_and_what_carries_packets_is_left(tmp_path: Path) -> None:
    async with started(tmp_path, "broker-1", "links") as nodes:
        paused, carrier = nodes["broker-1"], nodes["links"]
        await nodes.pause("broker-1")
        await nodes.stop()
        assert paused.end == "was ended by SIGTERM"
        assert carrier.running
        assert not nodes.processes
        nodes.put("links", "network", carrier)
