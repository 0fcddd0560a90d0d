from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from kazoo.client import KazooClient

from coordinators.zookeeper.coordinator import ZooKeeperCoordinator
from coordinators.zookeeper.session import Session
from tests.contract.backend import Backend
from tests.contract.servers import fresh_chroot, shared_server

if TYPE_CHECKING:
    from pathlib import Path

    from coordinators.api import Coordinator
    from coordinators.model import Broker
    from coordinators.registry import CoordinatorSetup

SESSION_TIMEOUT_MS = 2_000  # the shortest that the server grants
_sessions: WeakKeyDictionary[Coordinator, Session] = WeakKeyDictionary()


def coordinator_of(setup: CoordinatorSetup, **named: Any) -> ZooKeeperCoordinator:
    """One whose session a test can meddle with. `named`: what its constructor takes, and `attempt_s` of the session."""
    attempt_s, opened = named.pop("attempt_s", None), list[Session]()

    def open_session(*arguments: Any, **more: Any) -> Session:
        opened.append(Session(*arguments, attempt_s=attempt_s, **more))
        return opened[0]

    coordinator = ZooKeeperCoordinator(setup, opened=open_session, **named)
    _sessions[coordinator] = opened[0]
    return coordinator


def session_of(coordinator: Coordinator) -> Session:
    """That of one which `coordinator_of` has made."""
    return _sessions[coordinator]


class LookupBackend(Backend):
    name = "zookeeper"
    java = True
    options: ClassVar[dict[str, object]] = {"metadata": "lookup", "offsets": "zookeeper_each"}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.chroot = fresh_chroot()
        self.address = shared_server().address

    def made(self, me: Broker) -> Coordinator:
        own: dict[str, object] = {"session_timeout_ms": SESSION_TIMEOUT_MS}
        return coordinator_of(self.setup(me, connect=self.address, chroot=self.chroot, **{**own, **self.options}))

    async def kill(self, coordinator: Coordinator) -> None:
        """Break its connection for good, and let its session end now instead of after its timeout."""
        client = session_of(coordinator).client
        known = client.kazoo.client_id
        client.abandon()
        await asyncio.to_thread(end_session, self.address, known)


class WatchBackend(LookupBackend):
    name = "zookeeper-watch"
    options: ClassVar[dict[str, object]] = {
        "metadata": "watch",
        "offsets": "zookeeper_interval",
        "offsets_interval_ms": 50,
    }


class EachBackend(LookupBackend):
    name = "zookeeper-each"
    options: ClassVar[dict[str, object]] = {"metadata": "lookup_each", "offsets": "zookeeper_each", "delay_us": 200}


class WatchEachBackend(LookupBackend):
    name = "zookeeper-watch-each"
    options: ClassVar[dict[str, object]] = {"metadata": "watch", "offsets": "zookeeper_each"}


class MemoryBackend(LookupBackend):
    name = "zookeeper-memory"
    options: ClassVar[dict[str, object]] = {"metadata": "lookup", "offsets": "memory"}
    keeps_commits = passes_commits = False


class WatchMemoryBackend(MemoryBackend):
    name = "zookeeper-watch-memory"
    options: ClassVar[dict[str, object]] = {"metadata": "watch", "offsets": "memory"}


def end_session(address: str, client_id: tuple[int, bytes]) -> None:
    """End a session as its timeout would: whoever knows its password may close it."""
    twin = KazooClient(address, client_id=client_id)
    twin.start()
    twin.stop()
    twin.close()


BACKENDS = [LookupBackend, WatchBackend, EachBackend, WatchEachBackend, MemoryBackend, WatchMemoryBackend]
