"""What a broker may not do with what was its own a moment ago: a leadership, a group, a place in the cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from coordinators.errors import Unavailable
from coordinators.model import Committed, TopicPartition
from coordinators.zookeeper.requests import Create
from tests.contract.backend import WITHIN_S, asynchronous, until
from tests.contract.backends.zookeeper import end_session, session_of
from tests.integration.zookeeper.brokers import Clock, group, knows, led

if TYPE_CHECKING:
    from coordinators.zookeeper.coordinator import ZooKeeperCoordinator
    from coordinators.zookeeper.requests import Operation
    from tests.contract.servers import Server

pytestmark = pytest.mark.java
AT = TopicPartition("orders", 0)
GROUPS = ("a", "b", "c", "d", "e", "f")


@asynchronous
async def test_an_answer_that_came_after_the_lease_had_ended_is_none(server: Server) -> None:
    """Defence: the lease is compared once more when a look-up is answered, not only when it begins."""
    clock = Clock()
    async with group(server.address) as brokers:
        leader = await brokers.start(1, clock=clock, metadata="lookup")
        await leader.create_topic("orders", 1, 1)
        assert (await led(leader, AT)).leader == 1
        asking = asyncio.ensure_future(leader.find_leader(AT))
        while session_of(leader).client.oldest is None:  # noqa: ASYNC110 - until it is sent
            await asyncio.sleep(0)
        clock.jump(12)
        with pytest.raises(Unavailable):
            await asking


@asynchronous
async def test_the_former_home_of_a_group_writes_over_nothing_that_its_new_home_has_written(server: Server) -> None:
    """Defence: what waits to be written at an interval is dropped with the group. Were it written, consumers would
    begin again where they were before the group passed on."""
    async with group(server.address) as brokers:
        former = await brokers.start(1, offsets="zookeeper_interval", offsets_interval_ms=600_000)
        await former.create_topic("orders", 1, 1)
        for name in GROUPS:
            await former.commit_offsets(name, {AT: Committed(5)})
            await former.commit_offsets(name, {AT: Committed(6)})
        home = await brokers.start(2, offsets="zookeeper_each")
        await until(former, lambda view: 2 in view.brokers)
        await knows(home, "orders")
        passed_on = [name for name in GROUPS if former.group_coordinator(name) == 2]
        assert 0 < len(passed_on) < len(GROUPS)
        for name in passed_on:
            await home.commit_offsets(name, {AT: Committed(9)})
        await former.stop()
        await until(home, lambda view: 1 not in view.brokers)
        found = {name: await home.committed_offsets(name) for name in GROUPS}
        assert found == {name: {AT: Committed(9 if name in passed_on else 6)} for name in GROUPS}


@asynchronous
async def test_a_commit_that_comes_while_an_older_one_is_being_written_is_written_after_it(server: Server) -> None:
    """Defence: of what waits, only what was written is forgotten."""
    async with group(server.address) as brokers:
        home, other = (
            await brokers.start(1, offsets="zookeeper_interval", offsets_interval_ms=20),
            await brokers.start(2),
        )
        await until(home, lambda view: 2 in view.brokers)
        await home.create_topic("orders", 1, 1)
        await knows(other, "orders")
        owned = next(name for name in GROUPS if home.group_coordinator(name) == 1)
        await home.commit_offsets(owned, {AT: Committed(5)})
        writing, may_write, written = held_back(home)
        await home.commit_offsets(owned, {AT: Committed(6)})
        await asyncio.wait_for(writing.wait(), WITHIN_S)
        await home.commit_offsets(owned, {AT: Committed(7)})
        may_write.set()
        await asyncio.wait_for(written.wait(), WITHIN_S)
        assert await home.committed_offsets(owned) == {AT: Committed(7)}
        await home.stop()
        await until(other, lambda view: 1 not in view.brokers)
        assert await other.committed_offsets(owned) == {AT: Committed(7)}


def held_back(coordinator: ZooKeeperCoordinator) -> tuple[asyncio.Event, asyncio.Event, asyncio.Event]:
    """Set when an offset is about to be written; to be set, for it to be; set when it is."""
    writing, may_write, written = asyncio.Event(), asyncio.Event(), asyncio.Event()
    commit = session_of(coordinator).commit

    async def commit_when_told(kind: str, *operations: Operation) -> None:
        if not any("/offsets/" in operation.path for operation in operations):
            await commit(kind, *operations)
            return
        writing.set()
        await may_write.wait()
        await commit(kind, *operations)
        written.set()

    session_of(coordinator).commit = commit_when_told  # type: ignore[method-assign]
    return writing, may_write, written


class Killed(Exception):
    """Stands for SIGKILL."""


def killed_when_registered(coordinator: ZooKeeperCoordinator) -> list[tuple[int, bytes]]:
    """The process ends when its znode is there, before it does anything else. What lives on is its session: its id and
    password, once it has come to that."""
    commit, ghosts = session_of(coordinator).commit, []

    async def commit_and_end(kind: str, *operations: Operation) -> None:
        await commit(kind, *operations)
        if any(isinstance(operation, Create) and operation.ephemeral for operation in operations):
            ghosts.append(session_of(coordinator).client.kazoo.client_id)
            session_of(coordinator).client.abandon()
            raise Killed

    session_of(coordinator).commit = commit_and_end  # type: ignore[method-assign]
    return ghosts


@asynchronous
async def test_a_broker_that_died_while_it_registered_knows_its_own_ghost(server: Server) -> None:
    """Defence: a session is noted before its znode is there. The ghost's session is long, so that who does not know it
    as its own gives up before it has gone."""
    async with group(server.address) as brokers:
        before = brokers.made(1, session_timeout_ms=30_000)
        ghosts = killed_when_registered(before)
        with pytest.raises(Killed):
            await before.start()
        (ghost,) = ghosts
        looker = await brokers.session()
        left = await looker.get("test", brokers.tree.broker(1))
        assert left is not None
        assert left.owner == ghost[0]
        after = await brokers.start(1)
        await asyncio.to_thread(end_session, server.address, ghost)
        found = await looker.get("test", brokers.tree.broker(1))
        assert found is not None
        assert found.owner == session_of(after).id != ghost[0]
