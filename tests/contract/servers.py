"""Real ZooKeeper servers for tests: one for all that only use one, and others for those that stop it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from workloads.processes.ports import free_ports
from workloads.services.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

_chroots = count(1)


class Server:
    """A server that outlives the event loops of the tests that use it: it has one of its own, in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._folder = Path(tempfile.mkdtemp(prefix="brokerlab-zookeeper-"))
        (port,) = free_ports(1)
        self._server = ZooKeeperServer(self._folder / "server", self._folder / "log", port)
        self.data = self._folder / "server" / "data"
        self.port = port
        self.address = self._server.address
        self.running = False
        self.start()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def start(self) -> None:
        """Again after `stop`: on the same port, with the same data."""
        if not self.running:
            self._run(self._server.start())
            self.running = True

    def stop(self) -> None:
        self._run(self._server.stop())
        self.running = False

    def close(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        shutil.rmtree(self._folder)


@cache
def shared_server() -> Server:
    """Started when first asked for, stopped when the tests are over."""
    return Server()


@cache
def stoppable_server() -> Server:
    """Another one, for tests that stop it; the next of them starts it again."""
    return Server()


@pytest.fixture(scope="session", autouse=True)
def servers_are_stopped() -> Iterator[None]:
    """For the conftest modules of those who use them."""
    yield
    for made in (shared_server, stoppable_server):
        if made.cache_info().currsize:
            made().close()
            made.cache_clear()


def fresh_chroot() -> str:
    return f"/test-{next(_chroots)}"
