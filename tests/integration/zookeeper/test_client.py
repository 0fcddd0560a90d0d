"""kazoo's client on an event loop: nothing is lost, told in the wrong order or waited for (coordinators/zookeeper)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event, Timer
from typing import TYPE_CHECKING

import pytest

from coordinators.errors import OutcomeUnknown
from coordinators.zookeeper.requests import Create, Write
from tests.contract.backend import WITHIN_S, asynchronous, eventually
from tests.contract.backends.zookeeper import session_of
from tests.integration.zookeeper.brokers import group

if TYPE_CHECKING:
    from coordinators.zookeeper.session import Session
    from tests.contract.servers import Server
    from tests.integration.zookeeper.proxy import Proxy

pytestmark = pytest.mark.java
LARGE = bytes(200_000)
MANY = 640  # several times what kazoo has at a time
RESCUED_AFTER_S = 10.0  # an event loop that stands still until the server takes something; less than its session lasts


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@asynchronous
async def test_however_many_are_asked_at_once_each_has_its_own_answer_in_the_order_of_asking(server: Server) -> None:
    async with group(server.address) as brokers:
        session = await brokers.session()
        paths = [f"{brokers.chroot}-{number}" for number in range(20)]
        for path in paths:
            await session.commit("test", Create(path, path.encode()))
        asked, answered = paths * (MANY // len(paths)), list[str]()

        async def ask(path: str) -> bytes:
            node = await session.get("test", path)
            answered.append(path)
            assert node is not None
            return node.data

        found = await asyncio.gather(*(ask(path) for path in asked))
        assert found == [path.encode() for path in asked]
        assert answered == asked


@asynchronous
async def test_a_watch_is_told_before_what_is_answered_later(server: Server) -> None:
    """Defence: `Handler.dispatch_callback`. kazoo's own handler has a thread for watches and another for answers."""
    async with group(server.address) as brokers:
        watching, writing, fired = await brokers.session(), await brokers.session(), list[str]()
        watching.on_watch = fired.append
        path = brokers.chroot
        await writing.commit("test", Create(path))
        for number in range(1, 201):
            await watching.get("test", path, watch=True)
            await writing.commit("test", Write(path, b"%d" % number))
            node = await watching.get("test", path)
            assert node is not None
            assert (node.version, len(fired)) == (number, number)


@asynchronous
async def test_what_a_server_does_not_take_yet_keeps_neither_the_event_loop_nor_what_follows(
    server: Server, proxy: Proxy
) -> None:
    """Defence: `WITH_KAZOO_MAX`. Whoever asks kazoo for more than its socket to itself holds waits in the call."""
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1, connect=proxy.address, session_timeout_ms=20_000)
        session, path = session_of(coordinator), f"{brokers.chroot}/test"
        await session.commit("test", Create(path, b""))
        proxy.silence()
        rescue = Timer(RESCUED_AFTER_S, proxy.go_on_carrying)
        rescue.start()
        writes = [asyncio.create_task(session.commit("test", Write(path, LARGE))) for _ in range(MANY)]
        for _ in range(5):  # turns of the loop, for all that it will send by itself
            await asyncio.sleep(0)
        stood_still = not rescue.is_alive()
        rescue.cancel()
        assert not stood_still, "the event loop has waited for the server"
        assert not any(write.done() for write in writes)
        proxy.go_on_carrying()
        async with asyncio.timeout(WITHIN_S):
            await asyncio.gather(*writes)
        node = await session.get("test", path)
        assert node is not None
        assert (node.data, node.version) == (LARGE, len(writes))
        assert proxy.connections == 1


@asynchronous
async def test_an_event_loop_that_is_busy_for_long_loses_no_connection(server: Server, proxy: Proxy) -> None:
    """kazoo's thread pings, and reads the answers, when nobody else does."""
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1, connect=proxy.address)
        Event().wait(session_of(coordinator).lease.timeout_s)  # without a turn of the event loop
        await coordinator.create_topic("orders", 1, 1)
        assert proxy.connections == 1


@asynchronous
async def test_an_answer_that_cannot_be_read_ends_its_connection_and_the_next_one_serves(
    server: Server, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    """Defence: `Client` starts kazoo again, whose thread ends by such an answer for good."""
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1, connect=proxy.address, session_timeout_ms=20_000)
        session, path = session_of(coordinator), f"{brokers.chroot}/test"
        made = proxy.connections
        proxy.garble()
        with pytest.raises(OutcomeUnknown):
            await session.commit("test", Create(path, b""))
        await eventually(lambda: proxy.connections > made and session.connected)
        assert await session.get("test", path) is not None
        assert "cannot be read" in caplog.text


@asynchronous
async def test_connections_that_come_and_go_leave_no_descriptor_behind(server: Server, proxy: Proxy) -> None:
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1, connect=proxy.address)
        session, before = session_of(coordinator), descriptors()
        for _ in range(5):
            made = proxy.connections
            proxy.cut()
            await eventually(lambda: not session.connected)
            proxy.heal()
            await _reconnected(session, proxy, made)
        await eventually(lambda: descriptors() <= before)


async def _reconnected(session: Session, proxy: Proxy, made: int) -> None:
    await eventually(lambda: proxy.connections > made and session.connected)
