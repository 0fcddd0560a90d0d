"""Keeps this broker in its cluster, and what it has read of the tree fresh.

One task, `_follow`, does everything that follows from changes: enter the cluster with a new session, read what watches
marked, publish the view, act as controller. Another, `_keep_lease`, sends something when nothing else does.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from coordinators.errors import BrokerIdTaken, CoordinationError, JournalFailed, Unavailable, UnknownTopic, lost_disk
from coordinators.leadership import succession, without
from coordinators.zookeeper.controller import Controller
from coordinators.zookeeper.requests import together
from coordinators.zookeeper.session import HEARTBEATS_IN_A_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from coordinators.model import Partition, TopicPartition
    from coordinators.zookeeper.leaders import Leaders
    from coordinators.zookeeper.mirror import Mirror
    from coordinators.zookeeper.registration import Registration
    from coordinators.zookeeper.session import Session
    from coordinators.zookeeper.znodes import Tree

RETRY_S: Final = 0.2
LEAVE_WITHIN_S: Final = 3.0
_LOG: Final = logging.getLogger(__name__)


class Follower:
    """`on_taken` is told when this broker's id has passed to another, `on_reached` when ZooKeeper can be asked again;
    whoever uses this sets them."""

    def __init__(self, session: Session, tree: Tree, me: int, mirror: Mirror, leaders: Leaders) -> None:
        self._session = session
        self._me = me
        self._mirror = mirror
        self._leaders = leaders
        self.on_taken: Callable[[BrokerIdTaken], None] = lambda taken: None
        self.on_reached: Callable[[], None] = lambda: None
        self._controller = Controller(session, tree, me, mirror)
        self._registration: Registration
        self._registered_in = 0  # the session
        self._reported: set[str] = set()
        self._was_connected = True
        self._wake = asyncio.Event()
        self._catching_up = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        session.on_watch = self._watch_fired
        session.on_state = self._connection_moved

    # --- life ---------------------------------------------------------------------------------------------

    async def start(self, registration: Registration, reread_s: float) -> None:
        """Enter the cluster, and stay in it. Raises as `Registration.enter` and `Mirror.refresh`."""
        self._registration = registration
        await self._catch_up()
        self.keep(self._follow())
        self.keep(self._keep_lease())
        self.keep(every(reread_s, self._reread))

    def keep(self, work: Coroutine[None, None, None]) -> None:
        """Do it until `stop`."""
        self._tasks.append(asyncio.create_task(work))

    async def stop(self) -> bool:
        """Whether it had started."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return bool(tasks)

    async def leave(
        self,
        flush: Callable[[], Awaitable[None]],
        resign: Callable[[TopicPartition, int], Coroutine[None, None, Partition]],
    ) -> None:
        """Write what waits and pass on what is led; what cannot be done in time happens as after a crash."""
        try:
            async with asyncio.timeout(LEAVE_WITHIN_S):
                await flush()
                others = self._mirror.brokers.keys() - {self._me}
                led = [(at, old) for at, old in self._mirror.topics.partitions() if old.leader == self._me]
                heirs = [(at, old.epoch) for at, old in led if succession(old, others).leader in others]
                await together(resign(at, epoch) for at, epoch in heirs)
        except (CoordinationError, TimeoutError) as error:
            _LOG.warning("broker %s leaves without passing on all that it leads: %s", self._me, error)

    # --- what the session tells ---------------------------------------------------------------------------

    def _watch_fired(self, path: str) -> None:
        self._mirror.mark(path)
        self._wake.set()

    def _connection_moved(self) -> None:
        self._mirror.mark_all()  # watches are lost with their connection
        self._wake.set()
        connected = self._session.connected
        if connected:
            self.on_reached()
        if connected != self._was_connected and self._tasks:
            _LOG.warning("broker %s %s ZooKeeper", self._me, "reaches" if connected else "has lost")
        self._was_connected = connected

    async def _reread(self) -> None:
        self._mirror.mark_all()
        self._wake.set()

    # --- following the tree -------------------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                if self._session.connected:
                    await self._catch_up()
            except BrokerIdTaken as taken:
                self.on_taken(taken)
                return
            except (CoordinationError, JournalFailed) as error:  # a session that cannot be noted is not entered with
                _LOG.warning("broker %s cannot follow ZooKeeper for now: %s", self._me, error)
                await asyncio.sleep(RETRY_S)
                self._wake.set()

    async def _catch_up(self) -> None:
        async with self._catching_up:
            await self._catch_up_now()

    async def _catch_up_now(self) -> None:
        """Return when this broker is registered and has seen all that was marked; only then it may lead."""
        session_id = self._session.id
        if self._registered_in != session_id:
            await self._registration.enter()
            self._registered_in = session_id
            self._mirror.mark_all()
        while self._mirror.stale:
            await self._mirror.refresh()
            if self._registration.new and self._me in self._mirror.brokers:
                await self._give_up_lost()
            await self._controller.attend()
        if self._me not in self._mirror.brokers:
            self._vanished()
            raise Unavailable(f"the registration of broker {self._me} has vanished")
        self._leaders.publish()
        self._session.confirm(session_id)
        self._report_faults()

    async def _give_up_lost(self) -> None:
        """Where this broker's disk is new and the tree knows the broker from before: it has lost what it held. It is
        in sync no more, and a partition of which nobody else is has no leader until its topic is made again."""
        entered = self._mirror.entered_by[self._me]
        lost = [
            at
            for at, partition in self._mirror.topics.partitions()
            if self._me in partition.in_sync and self._mirror.topics.made_by[at] < entered
        ]
        for at in lost:
            with suppress(UnknownTopic):  # deleted meanwhile
                await self._leaders.change("register", at, lambda old: without(old, self._me))
        if lost:
            _LOG.error("%s", lost_disk(self._me, lost))
        self._registration.settled()

    def _report_faults(self) -> None:
        """Log what is wrong in the tree: once, and only what is still wrong when everything has been read."""
        faults = {str(fault) for fault in self._mirror.faults}
        for fault in sorted(faults - self._reported):
            _LOG.error("%s", fault)
        self._reported = faults

    # --- the lease ----------------------------------------------------------------------------------------

    async def _keep_lease(self) -> None:
        beat: asyncio.Task[None] | None = None
        while True:
            await asyncio.sleep(self._session.lease.timeout_s / HEARTBEATS_IN_A_TIMEOUT)
            if self._session.wants_heartbeat() and (beat is None or beat.done()):
                beat = asyncio.create_task(self._beat_if_possible())

    async def _beat_if_possible(self) -> None:
        with suppress(CoordinationError):  # the lease ends by itself
            await self._beat()

    async def _beat(self) -> None:
        """See that the registration is still there: who asks hears, and so keeps the lease. Raises `Unavailable`."""
        if not await self._registration.present():
            self._vanished()

    def _vanished(self) -> None:
        """To the others this broker is dead: it leads nothing until it is registered again."""
        self._session.lease.doubt()
        self._registered_in = 0
        self._wake.set()

    async def hear(self) -> None:
        """Know of all that had happened when this was called: ZooKeeper tells of changes before it answers what is
        asked later in the same session. Raises `Unavailable`, and as `start`."""
        await self._beat()
        if self._catching_up.locked() or self._mirror.stale or self._registered_in != self._session.id:
            await self._catch_up()


async def every(interval_s: float, work: Callable[[], Coroutine[None, None, None]]) -> None:
    while True:
        await asyncio.sleep(interval_s)
        await work()
