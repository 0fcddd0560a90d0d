"""What consumer groups leave in ZooKeeper's tree, and what is left when they go."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from brokers.rpc import brokerlab_pb2 as pb
from coordinators.errors import CoordinationError, JournalFailed
from coordinators.model import Committed, TopicPartition
from coordinators.zookeeper.requests import Create
from tests.contract.backend import MemoryJournal, asynchronous, eventually
from tests.contract.backends.zookeeper import end_session, session_of
from tests.contract.servers import fresh_chroot
from tests.integration.processes.running import RunningBroker
from tests.integration.processes.running import eventually as soon
from tests.integration.zookeeper.brokers import group, led

if TYPE_CHECKING:
    from pathlib import Path

    from brokers.rpc.brokerlab_pb2_grpc import DataStub
    from coordinators.zookeeper.session import Session
    from tests.contract.servers import Server

pytestmark = pytest.mark.java
AT = TopicPartition("orders", 0)
HOUR_MS = 3_600_000


async def tree_below(session: Session, path: str) -> set[str]:
    """Every znode below a path, that one left out."""
    found = set()
    for name in await session.children("test", path) or []:
        found |= {f"{path}/{name}"} | await tree_below(session, f"{path}/{name}")
    return found


@pytest.mark.parametrize("how", ["deleted", "expired"])
@asynchronous
async def test_nothing_is_left_of_a_group_whose_last_offset_goes(server: Server, how: str) -> None:
    async with group(server.address) as brokers:
        coordinator, session = await brokers.start(1), await brokers.session()
        for topic in ("orders", "clicks"):
            await coordinator.create_topic(topic, 2, 1)
        before = await tree_below(session, brokers.tree.topics)
        for number in range(20):
            for at in (AT, TopicPartition("orders", 1), TopicPartition("clicks", 0)):
                await coordinator.commit_offsets(f"a/group-{number}", {at: Committed(1)})
        if how == "expired":
            while await coordinator.committed_offsets("a/group-7"):
                await coordinator.expire_groups(1, [])
                await asyncio.sleep(0)
            assert await tree_below(session, brokers.tree.topics) - before == {
                f"{brokers.tree.groups_in(topic)}" for topic in ("orders", "clicks")
            }
        else:
            await coordinator.delete_topic("orders")
            assert await coordinator.committed_offsets("a/group-7") == {TopicPartition("clicks", 0): Committed(1)}
            await coordinator.delete_topic("clicks")
            assert await tree_below(session, brokers.tree.topics) == set()
        assert await tree_below(session, brokers.tree.consumers) == set()


@asynchronous
async def test_a_group_that_was_made_and_never_came_to_commit_goes_too(server: Server) -> None:
    async with group(server.address) as brokers:
        coordinator, session = await brokers.start(1), await brokers.session()
        for path in (brokers.tree.group("half"), brokers.tree.offsets("half"), brokers.tree.offsets_in("half", "t")):
            await session.commit("test", Create(path))
        while await tree_below(session, brokers.tree.consumers):
            await coordinator.expire_groups(1, [])


@asynchronous
async def test_a_tree_without_index_as_earlier_versions_left_it_gets_one_with_the_groups_next_first_commit(
    server: Server,
) -> None:
    async with group(server.address) as brokers:
        coordinator, session = await brokers.start(1), await brokers.session()
        await coordinator.create_topic("orders", 2, 1)
        for path in (brokers.tree.group("g"), brokers.tree.offsets("g"), brokers.tree.offsets_in("g", "orders")):
            await session.commit("test", Create(path))
        await coordinator.commit_offsets("g", {AT: Committed(1)})
        await coordinator.delete_topic("orders")
        await coordinator.create_topic("orders", 2, 1)
        await coordinator.commit_offsets("g", {AT: Committed(2)})
        assert await coordinator.committed_offsets("g") == {AT: Committed(2)}


@asynchronous
async def test_commits_beside_deletions_of_their_topic_leave_nothing_in_its_next_life(server: Server) -> None:
    async with group(server.address) as brokers:
        one, other = await brokers.start(1), await brokers.start(2)
        session = await brokers.session()
        homes = {f"g-{number}": one.group_coordinator(f"g-{number}") for number in range(10)}
        for _ in range(10):
            await one.create_topic("orders", 1, 1)
            work = [{1: one, 2: other}[home].commit_offsets(name, {AT: Committed(1)}) for name, home in homes.items()]
            done = await asyncio.gather(*work, one.delete_topic("orders"), return_exceptions=True)
            assert all(found is None or isinstance(found, CoordinationError) for found in done)
            assert done[-1] is None
            rows = {path for path in await tree_below(session, brokers.tree.consumers) if "/orders/" in path}
            assert rows == set()
            assert await tree_below(session, brokers.tree.topics) == set()


@asynchronous
async def test_a_first_commit_is_written_before_it_is_acknowledged_and_the_next_ones_at_the_interval(
    server: Server,
) -> None:
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1, offsets="zookeeper_interval", offsets_interval_ms=HOUR_MS)
        session = await brokers.session()
        await coordinator.create_topic("orders", 1, 1)
        written = brokers.tree.offset("readers", AT)
        await coordinator.commit_offsets("readers", {AT: Committed(7)})
        node = await session.get("test", written)
        assert node is not None
        await coordinator.commit_offsets("readers", {AT: Committed(8)})
        assert await session.get("test", written) == node
        assert await coordinator.committed_offsets("readers") == {AT: Committed(8)}
        await coordinator.delete_topic("orders")
        await coordinator.create_topic("orders", 1, 1)
        await coordinator.commit_offsets("readers", {AT: Committed(1)})
        assert await session.get("test", written) is not None


def test_a_groups_first_commit_outlives_its_broker_that_is_killed_though_commits_wait_for_an_interval(
    server: Server, tmp_path: Path
) -> None:
    options: dict[str, Any] = {
        "name": "zookeeper", "connect": server.address, "chroot": fresh_chroot(), "metadata": "watch",
        "offsets": "zookeeper_interval", "offsets_interval_ms": HOUR_MS, "session_timeout_ms": 2_000,
    }  # fmt: skip
    broker = RunningBroker(tmp_path, coordinator=options)
    try:
        broker.start()
        broker.admin_stub().CreateTopic(pb.CreateTopicRequest(name="t", partitions=1, replication_factor=1))
        request = pb.CommitOffsetsRequest(group="g", offsets=[pb.PartitionOffset(topic="t", offset=7)])
        assert broker.data_stub().CommitOffsets(request).error.code == pb.OK
        broker.end(signal.SIGKILL)
        broker.start()
        placed = broker.data_stub().CommittedOffsets(pb.CommittedOffsetsRequest(group="g"))
        assert [place.offset for place in placed.offsets] == [7]
    finally:
        broker.stop()


def test_a_broker_forgets_groups_that_nobody_uses_by_its_config(server: Server, tmp_path: Path) -> None:
    options = {"name": "zookeeper", "connect": server.address, "chroot": fresh_chroot(), "session_timeout_ms": 2_000}
    for coordinator in (options, {"name": "dsbs"}, {"name": "static"}):
        folder = tmp_path / str(coordinator["name"])
        broker = RunningBroker(folder, coordinator=coordinator, offsets={"retention_ms": 400})
        try:
            broker.start()
            broker.admin_stub().CreateTopic(pb.CreateTopicRequest(name="t", partitions=1, replication_factor=1))
            request = pb.CommitOffsetsRequest(group="g", offsets=[pb.PartitionOffset(topic="t", offset=7)])
            assert broker.data_stub().CommitOffsets(request).error.code == pb.OK
            soon(partial(has_nothing, broker.data_stub()), "the group is forgotten")
            assert broker.end() == 0
            assert broker.log == ""
        finally:
            broker.stop()


def has_nothing(stub: DataStub) -> bool:
    return not stub.CommittedOffsets(pb.CommittedOffsetsRequest(group="g")).offsets


@asynchronous
async def test_where_zookeeper_refuses_writes_commits_are_refused_and_reads_go_on(server: Server) -> None:
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1)
        await coordinator.create_topic("orders", 1, 1)
        await coordinator.commit_offsets("readers", {AT: Committed(7)})
        leader = await led(coordinator, AT)
        for permitted in (False, True):
            await asyncio.to_thread(permit, server.address, brokers.tree.offset("readers", AT), writes=permitted)
            if permitted:
                await coordinator.commit_offsets("readers", {AT: Committed(9)})
            else:
                with pytest.raises(CoordinationError) as refused:
                    await coordinator.commit_offsets("readers", {AT: Committed(8)})
                assert refused.value.definite
                assert await coordinator.committed_offsets("readers") == {AT: Committed(7)}
            assert await led(coordinator, AT) == leader
        assert await coordinator.committed_offsets("readers") == {AT: Committed(9)}


def permit(address: str, path: str, *, writes: bool) -> None:
    client = KazooClient(address)
    client.start()
    try:
        client.set_acls(path, [make_acl("world", "anyone", read=True, admin=True, write=writes)])
    finally:
        client.stop()
        client.close()


class FullJournal(MemoryJournal):
    full = False

    def replace(self, records: Any) -> None:
        if self.full:
            raise JournalFailed("no room")
        super().replace(records)


@asynchronous
async def test_a_broker_whose_disk_is_full_enters_with_a_new_session_when_it_can_note_it(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with group(server.address) as brokers:
        journal = FullJournal()
        coordinator = brokers.made(1, journal=lambda name: journal)
        await coordinator.start()
        await coordinator.create_topic("orders", 1, 1)
        first = session_of(coordinator).id
        journal.full = True
        await asyncio.to_thread(end_session, server.address, session_of(coordinator).client.kazoo.client_id)
        await eventually(lambda: any("no room" in record.message for record in caplog.records))
        assert not session_of(coordinator).lease.ends > monotonic()
        journal.full = False
        await eventually(lambda: session_of(coordinator).lease.ends > monotonic())
        assert session_of(coordinator).id != first
        assert (await led(coordinator, AT)).leader == 1
