"""ZooKeeper stops, comes back, comes back empty."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest

from coordinators.errors import InvalidRequest, Unavailable, Unreadable
from coordinators.model import Committed, TopicPartition
from coordinators.zookeeper import session as session_module
from coordinators.zookeeper.requests import Write
from tests.contract.backend import WITHIN_S, asynchronous, eventually, until
from tests.contract.backends.zookeeper import session_of
from tests.integration.zookeeper.brokers import group, knows, led
from workloads.processes.ports import free_ports

if TYPE_CHECKING:
    from coordinators.zookeeper.coordinator import ZooKeeperCoordinator
    from coordinators.zookeeper.session import Session
    from tests.contract.servers import Server

pytestmark = pytest.mark.java
AT = TopicPartition("orders", 0)
OUTLASTS_MS = 6_000  # what a busy machine takes to connect again once the server is back


def serving(coordinator: ZooKeeperCoordinator) -> bool:
    """Whether the broker takes itself for a leader, or may ask who is."""
    try:
        coordinator.known_leader(AT)
    except Unavailable:
        return False
    return True


async def written(looker: Session, path: str, *, version: int) -> None:
    """Return when somebody has written the znode so many times since it was made."""
    async with asyncio.timeout(WITHIN_S):
        while (node := await looker.get("test", path)) is None or node.version < version:
            pass


@asynchronous
async def test_lookup_refuses_at_once_and_watch_serves_until_its_lease_ends_and_both_come_back(
    own_server: Server,
) -> None:
    async with group(own_server.address) as brokers:
        asks = await brokers.start(1, metadata="lookup", session_timeout_ms=OUTLASTS_MS)
        watches = await brokers.start(2, session_timeout_ms=OUTLASTS_MS)
        await asks.create_topic("orders", 1, 1)
        await knows(watches, "orders")
        sessions = {session_of(asks).id, session_of(watches).id}
        own_server.stop()
        await eventually(lambda: not session_of(asks).connected and not session_of(watches).connected)
        with pytest.raises(Unavailable):
            await led(asks, AT)
        assert serving(watches), "its lease has not ended yet"
        await eventually(lambda: not serving(watches))
        own_server.start()
        await eventually(lambda: serving(watches) and serving(asks))
        assert (await led(asks, AT)).replicas == (await led(watches, AT)).replicas
        for broker in (asks, watches):
            await until(broker, lambda view: view.brokers.keys() == {1, 2})
        assert {session_of(asks).id, session_of(watches).id} == sessions, (
            "the server kept the sessions while it was down"
        )


@asynchronous
async def test_commits_at_an_interval_wait_for_zookeeper_to_come_back(own_server: Server) -> None:
    async with group(own_server.address) as brokers:
        home = await brokers.start(1, offsets="zookeeper_interval", offsets_interval_ms=20, session_timeout_ms=20_000)
        await home.create_topic("orders", 1, 1)
        await home.commit_offsets("readers", {AT: Committed(6)})
        own_server.stop()
        await eventually(lambda: not session_of(home).connected)
        await home.commit_offsets("readers", {AT: Committed(7)})
        with pytest.raises(Unavailable):
            await home.committed_offsets("readers")
        with pytest.raises(Unavailable):  # of a group that begins
            await home.commit_offsets("others", {AT: Committed(7)})
        own_server.start()
        await eventually(lambda: session_of(home).connected)
        looker = await brokers.session()
        path = brokers.tree.offset("readers", AT)
        await written(looker, path, version=1)
        assert await home.committed_offsets("readers") == {AT: Committed(7)}
        assert await home.committed_offsets("others") == {}


@asynchronous
async def test_a_zookeeper_that_comes_back_empty_is_refused_and_no_topic_is_forgotten(own_server: Server) -> None:
    """Were an empty tree believed, brokers would delete every message. The server itself turns those away that have
    seen more than it has; one that starts anew remembers its cluster."""
    async with group(own_server.address) as brokers:
        broker = await brokers.start(1)
        await broker.create_topic("orders", 1, 1)
        own_server.stop()
        shutil.rmtree(own_server.data)
        own_server.start()
        await eventually(lambda: not serving(broker))
        assert "orders" in broker.view().topics
        await broker.stop()
        with pytest.raises(Unreadable, match="/cluster/id"):
            await brokers.start(1)


@asynchronous
async def test_a_broker_of_another_cluster_is_refused(server: Server) -> None:
    async with group(server.address) as one, group(server.address, journals=one.journals) as other:
        await one.start(1)
        await other.start(2)
        with pytest.raises(Unreadable, match="belongs to cluster"):
            await other.start(1)


@asynchronous
async def test_a_start_without_zookeeper_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "CONNECT_WITHIN_S", 0.2)
    (port,) = free_ports(1)
    async with group(f"127.0.0.1:{port}") as brokers:
        with pytest.raises(Unavailable, match=str(port)):
            await brokers.start(1)


@asynchronous
async def test_a_broker_reaches_whichever_server_of_an_ensemble_answers(server: Server) -> None:
    (nobody,) = free_ports(1)
    async with group(server.address) as brokers:
        broker = await brokers.start(1, connect=f"127.0.0.1:{nobody},{server.address}")
        assert broker.view().brokers.keys() == {1}


@asynchronous
async def test_a_session_timeout_beyond_what_the_server_grants_does_not_stretch_the_lease(server: Server) -> None:
    """The server's bound is 20 of its ticks. A broker that took its own wish for it would lead after its death."""
    async with group(server.address) as brokers:
        broker = await brokers.start(1, session_timeout_ms=60_000)
        assert session_of(broker).lease.timeout_s == 20
        assert session_of(broker).lease.lasts_s < 20


@asynchronous
async def test_a_broker_stops_while_zookeeper_is_away(own_server: Server) -> None:
    async with group(own_server.address) as brokers:
        broker = await brokers.start(1)
        own_server.stop()
        await broker.stop()
        with pytest.raises(Unavailable):
            broker.known_leader(AT)


# --- who may ---------------------------------------------------------------------------------------------------------


@asynchronous
async def test_with_auth_the_znodes_are_open_to_that_user_alone(server: Server) -> None:
    async with group(server.address) as brokers:
        broker = await brokers.start(1, auth="brokerlab:a secret")
        await broker.create_topic("orders", 1, 1)
        stranger, friend = await brokers.session(), await brokers.session(auth="brokerlab:a secret")
        path = brokers.tree.state(AT)
        with pytest.raises(InvalidRequest, match="auth"):
            await stranger.get("test", path)
        with pytest.raises(InvalidRequest, match="auth"):
            await stranger.commit("test", Write(path, b"x"))
        assert await friend.get("test", path) is not None
        with pytest.raises(InvalidRequest, match="auth") as refusal:
            await brokers.start(2, auth="brokerlab:another secret")
        assert "secret" not in str(refusal.value)
