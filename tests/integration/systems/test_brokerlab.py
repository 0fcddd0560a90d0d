"""Our own brokers as a system under test: what start, stop and the disks promise, with real brokers."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.contract.backend import asynchronous
from tests.integration.processes.running import processes_of
from workloads.errors import UserError
from workloads.processes.ports import free_ports
from workloads.processes.process import PortTaken, ProcessFailed
from workloads.spec.settings import Architecture, ClusterSettings
from workloads.systems import brokerlab
from workloads.systems.api import SystemSetup
from workloads.systems.broker_folders import PORTS
from workloads.systems.brokerlab import EXIT_PORT_IN_USE, Brokerlab

STATIC = Architecture("plain", "static")
TOPIC = "orders"


def setup_of(folder: Path, brokers: int = 1, architecture: Architecture = STATIC, *, keep: bool = False) -> SystemSetup:
    settings = ClusterSettings(
        brokers=brokers, partitions=brokers, replication_factor=1, acks=1, fsync="never", fsync_interval_ms=None
    )
    return SystemSetup(architecture, settings, folder / "data", folder / "logs", keep=keep)


@asynccontextmanager
async def running(setup: SystemSetup) -> AsyncIterator[Brokerlab]:
    system = Brokerlab(setup)
    try:
        await system.start()
        yield system
    finally:
        await system.stop()


def send(system: Brokerlab, partition: int, ids: Sequence[int]) -> None:
    producer = Producer({"bootstrap.servers": ",".join(system.bootstrap("kafka")), "linger.ms": 0})
    for number in ids:
        producer.produce(TOPIC, number.to_bytes(8, "big") + b"...", partition=partition)
    assert producer.flush(30) == 0


@asynchronous
async def test_a_cluster_serves_is_audited_off_its_disks_and_leaves_its_logs_alone(tmp_path: Path) -> None:
    setup = setup_of(tmp_path, brokers=3)
    async with running(setup) as system:
        assert {name: role for name, (role, _) in system.nodes.processes.items()} == dict.fromkeys(
            ("broker-1", "broker-2", "broker-3"), "broker"
        )
        await system.create_topic(TOPIC, 3, 1, 0)
        assert sorted((await system.leaders(TOPIC)).values()) == [1, 2, 3]
        await asyncio.to_thread(send, system, 0, [5, 3])
        await asyncio.to_thread(send, system, 2, [2**63])
        assert await system.end_offsets(TOPIC) == {0: 2, 1: 0, 2: 1}
        found = await system.stored(TOPIC, tmp_path / "ids")
        assert {partition: ids.tolist() for partition, ids in found.items()} == {0: [5, 3], 1: [], 2: [2**63]}
        counted = [row.operations.get("produce", (0, 0, 0)) for row in await system.statistics()]
        assert sum(messages for _, messages, _ in counted) == 3
    assert processes_of(setup.folder) == {}
    assert not setup.folder.exists()
    assert sorted(path.name for path in setup.logs.glob("broker-*.log")) == [f"broker-{n}.log" for n in (1, 2, 3)]
    await system.stop()  # a second time


@asynchronous
async def test_a_killed_broker_comes_back_at_its_place_with_what_it_had(tmp_path: Path) -> None:
    async with running(setup_of(tmp_path)) as system:
        await system.create_topic(TOPIC, 1, 1, 0)
        await asyncio.to_thread(send, system, 0, range(10))
        before = [*system.bootstrap("kafka"), *system.bootstrap("grpc")]
        await system.nodes.kill("broker-1")
        await system.start_again("broker-1")
        assert [*system.bootstrap("kafka"), *system.bootstrap("grpc")] == before
        assert await system.end_offsets(TOPIC) == {0: 10}


@asynchronous
async def test_a_broker_whose_port_was_taken_meanwhile_does_not_start_again_and_is_no_process(tmp_path: Path) -> None:
    setup = setup_of(tmp_path)
    async with running(setup) as system:
        (place,) = system.places
        await system.nodes.kill("broker-1")
        with socket.create_server((place.host, place.kafka_port)), pytest.raises(PortTaken, match="broker-1 ended"):
            await system.start_again("broker-1")
        assert processes_of(setup.folder / "broker-1.json") == {}
        await system.start_again("broker-1")


@asynchronous
async def test_where_somebody_has_a_port_of_the_life_before_others_are_tried_and_kept(tmp_path: Path) -> None:
    setup = setup_of(tmp_path, keep=True)
    setup.folder.mkdir()
    kept = setup.folder / PORTS
    ports = free_ports(3)
    kept.write_text(json.dumps(ports))
    with socket.create_server(("127.0.0.1", ports[1])):
        async with running(setup) as system:
            (place,) = system.places
            assert {place.kafka_port, place.rpc_port}.isdisjoint(ports)
            assert json.loads(kept.read_text())[1:] == [place.kafka_port, place.rpc_port]
    assert setup.folder.exists(), "it is to be kept"


ENDS = f"""
import pathlib, sys
with (pathlib.Path(sys.argv[1]).parents[1] / "starts").open("a") as starts:
    starts.write("x")
sys.exit({EXIT_PORT_IN_USE})
"""


class Ending(Brokerlab):
    """Brokers that note that they were started, beside the folder of the cluster, and end."""

    broker = (sys.executable, "-c", ENDS)


@asynchronous
async def test_ports_that_are_always_taken_are_told_after_a_few_tries(tmp_path: Path) -> None:
    with pytest.raises(PortTaken, match=f"broker-1 ended with {EXIT_PORT_IN_USE}"):
        await Ending(setup_of(tmp_path)).start()
    assert (tmp_path / "starts").read_text() == "xxx"


@asynchronous
async def test_an_option_that_brokers_refuse_is_the_users_to_mend_and_nothing_is_left(tmp_path: Path) -> None:
    setup = setup_of(tmp_path, architecture=Architecture("mine", "static", (("nonsense", 1),)))
    with pytest.raises(UserError, match=r"architecture 'mine': broker-1 ended with 2(?s:.*)nonsense"):
        await Brokerlab(setup).start()
    assert processes_of(setup.folder) == {}
    assert not setup.folder.exists()


SILENT = (sys.executable, "-c", "import time; time.sleep(1000)")


class Silent(Brokerlab):
    broker = SILENT


@asynchronous
async def test_a_broker_that_does_not_say_that_it_serves_is_given_up_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brokerlab, "READY_WITHIN_S", 0.2)
    setup = setup_of(tmp_path)
    with pytest.raises(ProcessFailed, match="broker-1 was not ready within 0 s"):
        await Silent(setup).start()
    assert processes_of(setup.folder) == {}


@asynchronous
async def test_nor_does_it_stay_where_it_was_to_start_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = setup_of(tmp_path)
    async with running(setup) as system:
        await system.nodes.kill("broker-1")
        monkeypatch.setattr(Brokerlab, "broker", SILENT)
        monkeypatch.setattr(brokerlab, "READY_WITHIN_S", 0.2)
        with pytest.raises(ProcessFailed, match="broker-1 was not ready within 0 s"):
            await system.start_again("broker-1")
        assert processes_of(setup.folder / "broker-1.json") == {}


@asynchronous
async def test_a_life_that_was_killed_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    setup = setup_of(tmp_path)
    left = setup.folder / "broker-1" / "left"
    left.parent.mkdir(parents=True)
    left.touch()
    async with running(setup):
        assert not left.exists()
