"""Requests pass kazoo's thread by, and nothing is lost where they cannot (coordinators/zookeeper/handler.py)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from coordinators.errors import OutcomeUnknown
from coordinators.zookeeper.requests import Create, Write
from tests.contract.backend import WITHIN_S, asynchronous, eventually
from tests.integration.zookeeper.brokers import group

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinators.zookeeper.coordinator import ZooKeeperCoordinator
    from coordinators.zookeeper.session import Session
    from tests.contract.servers import Server
    from tests.integration.zookeeper.proxy import Proxy

pytestmark = pytest.mark.java
LARGE = bytes(200_000)


def returns_of(session: Session) -> Callable[[], int]:
    """How often kazoo's thread has found something to do from now on."""
    handler, returned = session._handler, []
    rest = handler._rest

    def counted(*arguments: object) -> object:
        found = rest(*arguments)  # type: ignore[arg-type]
        returned.append(found)
        return found

    handler._rest = counted  # type: ignore[assignment,method-assign]
    return lambda: len(returned)


async def lent(coordinator: ZooKeeperCoordinator) -> Session:
    """A broker's session, once the event loop speaks on its connection."""
    handler = coordinator._session._handler
    await eventually(lambda: handler._loan is not None and handler._resting)
    return coordinator._session


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@asynchronous
async def test_a_request_and_its_answer_give_kazoos_thread_nothing_to_do(server: Server) -> None:
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1, session_timeout_ms=20_000)
        session = await lent(coordinator)
        await session.commit("test", Write(coordinator._tree.controller, b"1"))
        returns = returns_of(session)
        for _ in range(200):
            assert await session.get("test", coordinator._tree.controller) is not None
        await asyncio.gather(*(session.get("test", coordinator._tree.controller) for _ in range(200)))
        assert returns() <= 1, "but for a ping"


@asynchronous
async def test_every_answer_is_that_of_its_request_while_the_connection_changes_hands(server: Server) -> None:
    """Were both to have it at once, requests would be sent twice or never, and answers be taken for others'."""
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1)
        session, loop = await lent(coordinator), asyncio.get_running_loop()
        paths = [f"{brokers.chroot}/test-{number}" for number in range(20)]
        for path in paths:
            await session.commit("test", Create(path, path.encode()))
        with WakesOf(session):
            for turn in range(2_000):
                asked = paths[: 1 + turn % 20]
                answers = asyncio.gather(*(session.get("test", path) for path in asked))
                if turn % 3 == 0:
                    session._handler._give_back()
                await asyncio.sleep(0)
                session._handler.lend(loop)
                assert [node and node.data for node in await answers] == [path.encode() for path in asked]
        assert session.connected


class WakesOf:
    """Wakes kazoo's thread for nothing all the time."""

    def __init__(self, session: Session) -> None:
        self._bell = session._handler._bell
        self._over = Event()
        self._thread = Thread(target=self._ring)

    def _ring(self) -> None:
        while not self._over.wait(0.0005):
            self._bell.wake()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


@asynchronous
async def test_what_a_server_does_not_take_yet_keeps_neither_the_event_loop_nor_what_follows(
    server: Server, proxy: Proxy
) -> None:
    """Kazoo's thread goes on with what the event loop would have to wait for."""
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1, connect=proxy.address, session_timeout_ms=20_000)
        session = await lent(coordinator)
        path = f"{brokers.chroot}/test"
        await session.commit("test", Create(path, b""))
        proxy.silence()
        session._client._connection._send_ping = lambda _: None  # which would push the rest out
        wire, writes = session._handler._wire, list[asyncio.Task[None]]()
        assert wire is not None
        while not wire.unsent:
            writes.append(asyncio.create_task(session.commit("test", Write(path, LARGE))))
            await asyncio.sleep(0)
        for _ in range(5):  # turns of the loop, for all that it will send by itself
            await asyncio.sleep(0)
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
    """Kazoo's thread reads the answers to its pings when nobody else does."""
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1, connect=proxy.address)
        session = await lent(coordinator)
        Event().wait(session.timeout_s)  # without a turn of the event loop
        await coordinator.create_topic("orders", 1, 1)
        assert proxy.connections == 1


@asynchronous
async def test_an_answer_that_cannot_be_read_ends_its_connection_and_the_next_one_serves(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with group(server.address) as brokers:
        # Long, so that kazoo's thread does not come by for a ping: where that reads it, it ends, as kazoo has it.
        coordinator = await brokers.start(1, session_timeout_ms=20_000)
        session = await lent(coordinator)
        connection, broken = session._client._connection, session._handler._wire
        connection._read_response = _refuse(connection)
        with pytest.raises(OutcomeUnknown):
            await session.commit("test", Create(f"{brokers.chroot}/test", b""))
        await eventually(lambda: session._handler._wire is not broken and session.connected)
        assert await session.get("test", f"{brokers.chroot}/test") is not None
        assert "cannot be read" in caplog.text


def _refuse(connection: object) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        del connection._read_response  # type: ignore[attr-defined]
        raise ValueError("damaged")

    return refuse


@asynchronous
async def test_connections_that_come_and_go_leave_no_descriptor_behind(server: Server, proxy: Proxy) -> None:
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1, connect=proxy.address)
        await lent(coordinator)
        session, before = coordinator._session, descriptors()
        for _ in range(5):
            made = proxy.connections
            proxy.cut()
            await eventually(lambda: not session.connected)
            proxy.heal()
            await _reconnected(session, proxy, made)
            await lent(coordinator)
        await eventually(lambda: descriptors() <= before)


async def _reconnected(session: Session, proxy: Proxy, made: int) -> None:
    await eventually(lambda: proxy.connections > made and session.connected)
