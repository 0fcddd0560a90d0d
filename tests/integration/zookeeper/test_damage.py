"""Znodes that no broker wrote, or that vanished: an error that names the path, and nothing else is harmed."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from coordinators.errors import CoordinationError, InvalidRequest, Unavailable, UnknownTopic, Unreadable
from coordinators.model import Committed, TopicPartition
from coordinators.zookeeper import znodes
from coordinators.zookeeper.mirror import Mirror
from coordinators.zookeeper.requests import Create, Delete, Write
from tests.contract.backend import asynchronous, eventually, until
from tests.contract.backends.zookeeper import session_of
from tests.integration.zookeeper.brokers import Group, group, knows, led

if TYPE_CHECKING:
    from coordinators.zookeeper.coordinator import ZooKeeperCoordinator
    from coordinators.zookeeper.session import Session
    from tests.contract.servers import Server

pytestmark = pytest.mark.java
AT = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
DAMAGE = [b"", b"no JSON", b"[]", b'{"version":2}', b"[" * 100_000, b"x" * 1_040_000]


def refusal(coordinator: ZooKeeperCoordinator, at: TopicPartition = AT) -> str:
    """Why the broker cannot say who leads, or nothing."""
    try:
        coordinator.known_leader(at)
    except Unreadable as fault:
        return str(fault)
    return ""


async def with_topic(brokers: Group) -> tuple[ZooKeeperCoordinator, Session]:
    coordinator = await brokers.start(1)
    await coordinator.create_topic("orders", 2, 1)
    return coordinator, await brokers.session()


@asynchronous
async def test_a_damaged_state_is_refused_by_its_path_and_its_neighbour_serves(server: Server) -> None:
    async with group(server.address) as brokers:
        watches, meddler = await with_topic(brokers)
        asks = await brokers.start(2, metadata="lookup")
        path = brokers.tree.state(AT)
        before = await led(watches, AT)
        for damage in DAMAGE:
            await meddler.commit("test", Write(path, damage))
            await eventually(lambda: path in refusal(watches))
            with pytest.raises(Unreadable, match=path):
                await led(asks, AT)
            assert (await led(asks, OTHER)) == (await led(watches, OTHER))
            assert "orders" in watches.view().topics
        await meddler.commit("test", Write(path, znodes.encode_state(before)))
        await eventually(lambda: not refusal(watches))
        assert await led(asks, AT) == await led(watches, AT) == before


@asynchronous
async def test_a_state_that_was_deleted_by_hand_is_refused_and_the_topic_is_not_forgotten(server: Server) -> None:
    async with group(server.address) as brokers:
        coordinator, meddler = await with_topic(brokers)
        path = brokers.tree.state(AT)
        await meddler.commit("test", Delete(path))
        await eventually(lambda: path in refusal(coordinator))
        assert len(coordinator.view().topics["orders"].partitions) == 2


@asynchronous
async def test_a_damaged_topic_is_not_forgotten_and_can_be_deleted(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with group(server.address) as brokers:
        coordinator, meddler = await with_topic(brokers)
        path = brokers.tree.topic("orders")
        for times in (1, 2):  # what is told again was forgotten meanwhile
            await meddler.commit("test", Write(path, b"{}"), Create(f"{brokers.tree.partition(AT)}/stray"))
            await eventually(lambda times=times: len(told(caplog, path)) == times)  # type: ignore[misc]
            assert coordinator.known_leader(AT) is not None
            await coordinator.delete_topic("orders")
            with pytest.raises(UnknownTopic):
                await led(coordinator, AT)
            await coordinator.create_topic("orders", 2, 1)


def told(caplog: pytest.LogCaptureFixture, path: str) -> list[str]:
    """What brokers have said of a znode."""
    return [message for message in caplog.messages if message.startswith(f"{path}:")]


@asynchronous
async def test_a_topic_that_nobody_made_is_not_there_and_one_of_its_name_is_refused(server: Server) -> None:
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1)
        meddler = await brokers.session()
        names = [f"stray-{number}" for number in range(1_000)]
        await meddler.commit("test", *(Create(brokers.tree.topic(name)) for name in [*names, "not a name"]))
        mirror = Mirror(meddler, brokers.tree)
        meddler.on_watch = mirror.mark
        mirror.mark_all()
        await mirror.refresh()
        assert len(list(mirror.faults)) == 1_001
        await coordinator.create_topic("orders", 1, 1)
        await eventually(lambda: mirror.stale)
        await mirror.refresh()
        assert coordinator.view().topics.keys() == mirror.topics.read.keys() == {"orders"}
        assert len(list(mirror.faults)) == 1_001, "what is damaged stays so until it is read again"


@asynchronous
async def test_a_registration_that_cannot_be_read_is_nobodys(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1)
        meddler = await brokers.session()
        strays = {brokers.tree.broker(7): b'{"version":1}', f"{brokers.tree.brokers}/seven": b""}
        for path, data in strays.items():
            await meddler.commit("test", Create(path, data, ephemeral=True))
        await eventually(lambda: all(told(caplog, path) for path in strays))
        assert coordinator.view().brokers.keys() == {1}


@asynchronous
async def test_a_registration_that_was_written_over_is_written_anew(server: Server) -> None:
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1, reread_s=0.05)
        other = await brokers.start(2, reread_s=0.05)
        meddler = await brokers.session()
        await meddler.commit("test", Write(brokers.tree.broker(1), b"{}"))
        await until(other, lambda view: 1 not in view.brokers)
        await until(other, lambda view: view.brokers.get(1) == coordinator.me)


@asynchronous
async def test_offsets_that_cannot_be_read_are_refused_by_their_path(server: Server) -> None:
    """A guess would make consumers skip messages."""
    async with group(server.address) as brokers:
        coordinator, meddler = await with_topic(brokers)
        await coordinator.commit_offsets("readers", {AT: Committed(7)})
        path = brokers.tree.offset("readers", AT)
        for damage in (*DAMAGE, b'{"version":1,"offset":-1,"leader_epoch":-1,"metadata":""}'):
            await meddler.commit("test", Write(path, damage))
            with pytest.raises(Unreadable, match=path):
                await coordinator.committed_offsets("readers")
        await coordinator.commit_offsets("readers", {AT: Committed(8)})
        assert await coordinator.committed_offsets("readers") == {AT: Committed(8)}


@asynchronous
async def test_a_controller_that_is_nobody_hinders_nobody_for_longer_than_it_is_there(server: Server) -> None:
    async with group(server.address) as brokers:
        coordinator, meddler = await with_topic(brokers)
        await until(coordinator, lambda view: view.controller == 1)
        path = brokers.tree.controller
        await meddler.commit("test", Delete(path), Create(path, b"garbage", ephemeral=True))
        await until(coordinator, lambda view: view.controller == -1)
        await meddler.commit("test", Delete(path))
        await until(coordinator, lambda view: view.controller == 1)


@asynchronous
async def test_a_tree_that_is_deleted_under_the_brokers_stops_them_and_deletes_nothing(server: Server) -> None:
    async with group(server.address) as brokers:
        coordinator, meddler = await with_topic(brokers)
        await _delete_all(meddler, brokers.chroot)
        await eventually(lambda: coordinator.lease_ends < 0)
        with pytest.raises(Unavailable):
            coordinator.known_leader(AT)
        assert "orders" in coordinator.view().topics


@asynchronous
async def test_a_topic_that_nobody_deleted_is_not_forgotten_when_it_vanishes(server: Server) -> None:
    """Defence: the folder of all topics counts the deletions. Were what is absent taken for deleted, whoever empties a
    tree by hand would delete the messages of all brokers."""
    async with group(server.address) as brokers:
        coordinator, meddler = await with_topic(brokers)
        await coordinator.create_topic("clicks", 1, 1)
        other = await brokers.start(2)
        await _delete_all(meddler, brokers.tree.topic("orders"))
        for broker in (coordinator, other):
            await eventually(lambda broker=broker: "vanished" in refusal(broker))  # type: ignore[misc]
        await coordinator.delete_topic("clicks")
        for broker in (coordinator, other):
            view = await until(broker, lambda view: "clicks" not in view.topics)
            assert len(view.topics["orders"].partitions) == 2


@asynchronous
async def test_an_emptied_tree_that_another_broker_fills_anew_is_not_believed(server: Server) -> None:
    async with group(server.address) as brokers, group(server.address, chroot=brokers.chroot) as newcomers:
        coordinator, meddler = await with_topic(brokers)
        await _delete_all(meddler, brokers.chroot)
        stranger = await newcomers.start(3)
        await stranger.create_topic("clicks", 1, 1)
        await stranger.delete_topic("clicks")
        await eventually(lambda: coordinator.lease_ends < 0)
        with contextlib.suppress(CoordinationError):
            await coordinator.find_topics(["clicks", "orders"])
        assert "orders" in coordinator.view().topics


@asynchronous
async def test_a_topic_that_is_replaced_by_hand_is_not_taken_for_one_that_was_deleted(server: Server) -> None:
    """Defence: the deletions that are counted. Were every new life believed, whoever loads a tree from a copy would
    delete the messages of all brokers."""
    async with group(server.address) as brokers:
        watches, meddler = await with_topic(brokers)
        asks = await brokers.start(2, metadata="lookup")
        before = watches.view().topics["orders"]
        await _replace(meddler, brokers.tree.topic("orders"))
        await eventually(lambda: "vanished" in refusal(watches))
        with pytest.raises(Unreadable, match="vanished"):
            await led(asks, AT)
        assert watches.view().topics["orders"] == asks.view().topics["orders"] == before


async def _replace(session: Session, path: str) -> None:
    """The same tree from this znode down, by another transaction."""
    copied: list[Create] = []

    async def copy(below: str) -> None:
        node = await session.get("test", below)
        assert node is not None
        copied.append(Create(below, node.data))
        for child in await session.children("test", below) or []:
            await copy(f"{below}/{child}")

    await copy(path)
    await session.commit("test", *(Delete(row.path) for row in reversed(copied)), *copied)


async def _delete_all(session: Session, path: str) -> None:
    for child in await session.children("test", path) or []:
        await _delete_all(session, f"{path}/{child}")
    await session.commit("test", Delete(path))


@asynchronous
async def test_a_topic_too_large_for_one_transaction_is_refused_and_none_of_it_is_there(server: Server) -> None:
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1)
        with pytest.raises(InvalidRequest, match="one transaction"):
            await coordinator.create_topic("orders", 10_000, 1)
        await coordinator.create_topic("orders", 1_024, 1)
        assert len(coordinator.view().topics["orders"].partitions) == 1_024


@asynchronous
async def test_a_deleted_topic_takes_thousands_of_commits_with_it(server: Server) -> None:
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1)
        await coordinator.create_topic("orders", 1_024, 1)
        ats = [TopicPartition("orders", number) for number in range(1_024)]
        await coordinator.commit_offsets("readers", {at: Committed(1) for at in ats})
        await coordinator.delete_topic("orders")
        looker = await brokers.session()
        assert await looker.children("test", brokers.tree.topics) == []
        assert await looker.children("test", brokers.tree.consumers) == []
        await coordinator.create_topic("orders", 1, 1)
        assert await coordinator.committed_offsets("readers") == {}


@asynchronous
async def test_a_topic_made_by_others_can_be_used_before_its_watch_fires(server: Server) -> None:
    async with group(server.address) as brokers:
        maker, deaf = await brokers.start(1), await brokers.start(2)
        session_of(deaf).on_watch = lambda path: None
        await maker.create_topic("orders", 1, 1)
        assert deaf.known_leader(AT) is None
        assert (await led(deaf, AT)).leader in {1, 2}
        assert deaf.known_leader(AT) is not None
        await knows(deaf, "orders")
