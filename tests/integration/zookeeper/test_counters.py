"""What the architectures ask of others on the way of a message: the numbers that the experiments compare."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import grpc.aio
import pytest

from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.brokerlab_pb2_grpc import AdminStub, DataStub
from coordinators.model import Committed, TopicPartition
from coordinators.zookeeper.requests import Check, Create, Delete, Write
from tests.contract.backend import asynchronous
from tests.contract.backends.zookeeper import session_of
from tests.integration.zookeeper.brokers import group, led
from workloads.spec.settings import Architecture, ClusterSettings, Fsync
from workloads.systems.api import SystemSetup
from workloads.systems.architectures import ORDINARY
from workloads.systems.registry import create

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from coordinators.zookeeper.coordinator import ZooKeeperCoordinator
    from tests.contract.servers import Server
    from tests.integration.zookeeper.proxy import Proxy

pytestmark = pytest.mark.java
AT = TopicPartition("orders", 0)
MESSAGES = 30_000
BATCH = 20
REQUESTS = MESSAGES // BATCH


@asynchronous
async def test_lookup_asks_once_for_each_request_and_watch_never(server: Server) -> None:
    async with group(server.address) as brokers:
        asks, watches = await brokers.start(1, metadata="lookup"), await brokers.start(2)
        await asks.create_topic("orders", 1, 1)
        for coordinator in (asks, watches):
            await led(coordinator, AT)  # warm-up
        before = [coordinator.meter.snapshot().get("lookup", (0, 0, 0))[0] for coordinator in (asks, watches)]
        for _ in range(100):
            await led(asks, AT)
            await led(watches, AT)
        after = [coordinator.meter.snapshot().get("lookup", (0, 0, 0))[0] for coordinator in (asks, watches)]
        assert [later - earlier for earlier, later in zip(before, after, strict=True)] == [100, 0]


@asynchronous
async def test_what_kazoos_threads_cost_grows_with_what_is_asked_and_is_not_forgotten_when_they_end(
    server: Server,
) -> None:
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1, metadata="lookup")
        await coordinator.create_topic("orders", 1, 1)
        spent = [coordinator.client_cpu_ns]
        for _ in range(2):
            for _ in range(100):
                await led(coordinator, AT)
            spent.append(coordinator.client_cpu_ns)
        await coordinator.stop()
        spent.append(coordinator.client_cpu_ns)
        assert 0 < spent[0] < spent[1] < spent[2] < spent[3]


@asynchronous
async def test_every_commit_is_a_write_and_those_at_an_interval_are_written_together(server: Server) -> None:
    async with group(server.address) as brokers:
        each = await brokers.start(1)
        await each.create_topic("orders", 1, 1)
        await each.commit_offsets("readers", {AT: Committed(0)})
        assert await commits(each, 100) == 100
    async with group(server.address) as brokers:
        together = await brokers.start(1, offsets="zookeeper_interval", offsets_interval_ms=3_600_000)
        await together.create_topic("orders", 1, 1)
        await together.commit_offsets("readers", {AT: Committed(0)})
        assert await commits(together, 100) == 0
        before = together.meter.of("commit").requests
        await together.stop()
        assert together.meter.of("commit").requests - before == 1


async def commits(coordinator: ZooKeeperCoordinator, number: int) -> int:
    """The requests that so many commits cost."""
    before = coordinator.meter.of("commit").requests
    for offset in range(number):
        await coordinator.commit_offsets("readers", {AT: Committed(offset)})
    return coordinator.meter.of("commit").requests - before


@asynchronous
async def test_the_bytes_that_are_counted_are_those_on_the_wire(server: Server, proxy: Proxy) -> None:
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1, connect=proxy.address, metadata="lookup", session_timeout_ms=20_000)
        await coordinator.create_topic("orders", 3, 1)
        await coordinator.commit_offsets("readers", {AT: Committed(0, metadata="m")})
        await session_of(coordinator).sync("settle", brokers.tree.topics)
        counted, carried = total_bytes(coordinator), proxy.carried_bytes
        for number in range(20):
            await led(coordinator, AT)
            await coordinator.commit_offsets("readers", {AT: Committed(number, metadata="m")})
            await coordinator.committed_offsets("readers")
            await session_of(coordinator).sync("test", brokers.tree.topics)
            await session_of(coordinator).children("test", brokers.tree.topics)
            path = f"{brokers.chroot}/scratch"
            await session_of(coordinator).commit(
                "test", Create(path, b"data"), Write(path, b"more"), Check(path), Delete(path)
            )
        assert total_bytes(coordinator) - counted == proxy.carried_bytes - carried


def total_bytes(coordinator: ZooKeeperCoordinator) -> int:
    return sum(size for _, size, _ in coordinator.meter.snapshot().values())


# --- real brokers ----------------------------------------------------------------------------------------------------

ARCHITECTURES = [
    (ORDINARY["static"], 0),
    (ORDINARY["dsbs"], 0),
    (ORDINARY["zookeeper-watch"], 0),
    (Architecture("zookeeper-each", "zookeeper", (("metadata", "lookup_each"), ("offsets", "memory"))), REQUESTS),
    (ORDINARY["zookeeper"], None),
]


@pytest.mark.parametrize(("architecture", "lookups"), ARCHITECTURES, ids=[row[0].name for row in ARCHITECTURES])
@asynchronous
async def test_requests_for_coordination_that_thirty_thousand_messages_cost(
    architecture: Architecture, lookups: int | None, tmp_path: Path
) -> None:
    async with running(architecture, tmp_path) as addresses:
        leader = await with_topic(addresses)
        await DataStub(leader).Produce(a_request())  # whoever leads has heard of the topic when it has answered
        before = await coordination(leader)
        answers = [answer async for answer in DataStub(leader).ProduceStream(produced())]
        assert [answer.error.code for answer in answers] == [pb.OK] * REQUESTS
        after = await coordination(leader)
        asked = after.get("lookup", 0) - before.get("lookup", 0)
        assert asked == lookups if lookups is not None else 1 <= asked < REQUESTS, "those that wait share look-ups"
        background = {"heartbeat", "here"} if architecture.row == "dsbs" else {"heartbeat", "refresh"}
        assert {kind for kind in after if after[kind] > before.get(kind, 0)} <= background | {"lookup"}
        statistics = await AdminStub(leader).Statistics(pb.StatisticsRequest())
        assert (statistics.coordination_cpu_ns > 0) == (architecture.row == "zookeeper")


@pytest.mark.parametrize(("fsync", "forced"), [("never", "no"), ("always", "yes")])
@asynchronous
async def test_zookeeper_forces_changes_to_the_disk_where_brokers_do(tmp_path: Path, fsync: Fsync, forced: str) -> None:
    """What `forceSync` does is tested with the server alone (tests/integration/processes/test_zookeeper.py)."""
    async with running(ORDINARY["zookeeper"], tmp_path, fsync):
        assert f"forceSync={forced}\n" in (tmp_path / "cluster" / "zookeeper" / "zoo.cfg").read_text()


@asynccontextmanager
async def running(architecture: Architecture, folder: Path, fsync: Fsync = "never") -> AsyncIterator[Sequence[str]]:
    settings = ClusterSettings(
        brokers=3, partitions=1, replication_factor=1, acks=1, fsync=fsync, fsync_interval_ms=None
    )
    system = create(SystemSetup(architecture, settings, folder / "cluster", folder / "logs"))
    try:
        await system.start()
        yield system.bootstrap("grpc")
    finally:
        await system.stop()


async def with_topic(addresses: Sequence[str]) -> grpc.aio.Channel:
    """Make the topic; the way to its leader."""
    channels = {number: grpc.aio.insecure_channel(address) for number, address in enumerate(addresses, start=1)}
    request = pb.CreateTopicRequest(name=AT.topic, partitions=1, replication_factor=1)
    answer = await AdminStub(channels[1]).CreateTopic(request)
    return channels[answer.topic.partitions[0].leader]


async def produced() -> AsyncIterator[pb.ProduceRequest]:
    for _ in range(REQUESTS):
        yield a_request()


def a_request() -> pb.ProduceRequest:
    return pb.ProduceRequest(topic=AT.topic, partition=0, acks=1, records=[pb.Record(value=b"x" * 32)] * BATCH)


async def coordination(leader: grpc.aio.Channel) -> Mapping[str, int]:
    statistics = await AdminStub(leader).Statistics(pb.StatisticsRequest())
    return {row.operation: row.count for row in statistics.coordination}
