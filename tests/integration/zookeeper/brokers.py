"""Brokers' ends of one cluster in ZooKeeper, some of them behind a proxy."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from coordinators.meter import Meter
from coordinators.model import Partition
from coordinators.registry import CoordinatorSetup
from coordinators.zookeeper.coordinator import ZooKeeperCoordinator
from coordinators.zookeeper.session import Session
from coordinators.zookeeper.znodes import Tree
from tests.contract.backend import Journals, addressed, until
from tests.contract.backends.zookeeper import coordinator_of
from tests.contract.servers import fresh_chroot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from coordinators.model import Broker, TopicPartition
    from coordinators.registry import Journal

SESSION_TIMEOUT_MS = 2_000  # the shortest that the server grants


class Clock:
    """The real one, which a test can push forward as a process that is stopped experiences it."""

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def __call__(self) -> float:
        return monotonic() + self._ahead_s

    def jump(self, by_s: float) -> None:
        self._ahead_s += by_s


@dataclass
class Group:
    """Starts brokers with journals that survive their restarts; stops all of them in the end."""

    address: str
    chroot: str = field(default_factory=fresh_chroot)
    journals: Journals = field(default_factory=Journals)

    def __post_init__(self) -> None:
        self.tree = Tree(self.chroot)
        self._made: list[ZooKeeperCoordinator] = []
        self._sessions: list[Session] = []

    def made(
        self,
        me: int | Broker,
        *,
        clock: Callable[[], float] = monotonic,
        reread_s: float = 60.0,
        attempt_s: float | None = None,
        journal: Callable[[str], Journal] | None = None,
        **options: object,
    ) -> ZooKeeperCoordinator:
        broker = addressed(me) if isinstance(me, int) else me
        chosen: dict[str, Any] = {
            "connect": self.address,
            "chroot": self.chroot,
            "metadata": "watch",
            "session_timeout_ms": SESSION_TIMEOUT_MS,
        }
        setup = CoordinatorSetup(broker, (), journal or self.journals.of(broker), chosen | options)
        coordinator = coordinator_of(setup, clock=clock, reread_s=reread_s, attempt_s=attempt_s)
        self._made.append(coordinator)
        return coordinator

    def forget(self, me: int) -> None:
        """The broker's disk is lost."""
        self.journals.lose(addressed(me))

    async def start(self, me: int | Broker, **options: Any) -> ZooKeeperCoordinator:
        coordinator = self.made(me, **options)
        await coordinator.start()
        return coordinator

    async def session(self, auth: str | None = None) -> Session:
        """A session of nobody in particular, to look and to meddle with."""
        session = Session(
            self.address,
            timeout_ms=SESSION_TIMEOUT_MS,
            auth=auth,
            meter=Meter(),
            clock=monotonic,
        )
        self._sessions.append(session)
        await session.start()
        return session

    async def close(self) -> None:
        for coordinator in self._made:
            await coordinator.stop()
        for session in self._sessions:
            await session.stop()


@asynccontextmanager
async def group(address: str, **named: Any) -> AsyncIterator[Group]:
    opened = Group(address, **named)
    try:
        yield opened
    finally:
        await opened.close()


async def led(coordinator: ZooKeeperCoordinator, at: TopicPartition) -> Partition:
    found = coordinator.leader(at)
    return found if isinstance(found, Partition) else await found


async def knows(coordinator: ZooKeeperCoordinator, topic: str) -> None:
    await until(coordinator, lambda view: topic in view.topics)
