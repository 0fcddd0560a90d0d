"""`zookeeper` and `zookeeper-watch`: the contract's verbs as reads and writes of ZooKeeper's tree.

Two policies for who leads: `lookup` asks ZooKeeper on every produce and fetch and keeps nothing (its view follows the
tree only so that a broker opens the logs it is to hold and can describe the cluster); `watch` answers from the mirror,
and asks only for what the mirror has not got yet.

One task, `_follow`, does everything that follows from changes: enter the cluster with a new session, read what watches
marked, publish the view, act as controller. Another, `_keep_lease`, sends something when nothing else does.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Final

from coordinators.api import Coordinator, Standing
from coordinators.errors import (
    BrokerIdTaken,
    CoordinationError,
    JournalFailed,
    OutcomeUnknown,
    Unavailable,
    UnknownTopic,
    lost_disk,
)
from coordinators.idleness import Stamps
from coordinators.leadership import resigned, succession, with_in_sync, without
from coordinators.model import Creation, Partition, TopicPartition, topic_name_fault
from coordinators.zookeeper import znodes
from coordinators.zookeeper.controller import Controller
from coordinators.zookeeper.groups import StoredGroups
from coordinators.zookeeper.mirror import Mirror
from coordinators.zookeeper.offsets import IntervalOffsets, WrittenOffsets
from coordinators.zookeeper.options import parse
from coordinators.zookeeper.pipeline import together
from coordinators.zookeeper.registration import Registration
from coordinators.zookeeper.requests import Changed, Missing, Write
from coordinators.zookeeper.session import Session
from coordinators.zookeeper.topics import Topics

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Mapping

    from coordinators.model import TopicSettings
    from coordinators.registry import CoordinatorSetup
    from coordinators.zookeeper.requests import Node

REREAD_S: Final = 30.0  # a watch that was lost unnoticed is made good within this
RETRY_S: Final = 0.2
HEARTBEATS_IN_A_TIMEOUT: Final = 6
CHANGE_TRIES_MAX: Final = 5
LEAVE_WITHIN_S: Final = 3.0
_LOG: Final = logging.getLogger(__name__)


class ZooKeeperCoordinator(Coordinator):
    def __init__(
        self, setup: CoordinatorSetup, *, clock: Callable[[], float] = monotonic, reread_s: float = REREAD_S
    ) -> None:
        """Raises `InvalidRequest` for an option."""
        self._options = parse(setup.options)
        watches = self._options.metadata == "watch"
        super().__init__(setup.me, clock=clock, doubt_s=self._options.doubt_ms / 1000 if watches else inf)
        self._journal = setup.journal
        self._reread_s = reread_s
        self._lookup = self._options.metadata == "lookup"
        self._tree = znodes.Tree(self._options.chroot)
        self._session = Session(
            self._options.connect,
            timeout_ms=self._options.session_timeout_ms,
            auth=self._options.auth,
            meter=self.meter,
            clock=clock,
            on_watch=self._watch_fired,
            on_state=self._connection_moved,
        )
        self._mirror = Mirror(self._session, self._tree)
        self._controller = Controller(self._session, self._tree, self.me.id, self._mirror)
        self._topics = Topics(self._session, self._tree)
        self._offsets = self._chosen_offsets()
        self._kept = KeptOffsets(self._offsets, StoredGroups(self._session, self._tree, self._serves))
        self._registered_in = 0  # the session
        self._lives_ended = 0
        self._reported: set[str] = set()
        self._was_connected = True
        self._wake = asyncio.Event()
        self._catching_up = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    def _chosen_offsets(self) -> WrittenOffsets:
        if self._options.offsets == "every_commit":
            return WrittenOffsets(self._session, self._tree)
        return IntervalOffsets(
            self._session,
            self._tree,
            is_known=self._is_known,
            check=self._check_exists,
            serves=self._serves,
        )

    def _serves(self, group: str) -> bool:
        return self.group_coordinator(group) == self.me.id

    # --- life ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        self._registration = Registration(self._session, self._tree, self.me, self._journal("zookeeper"))
        await self._session.start()
        since = self._clock()
        await self._catch_up()
        self._keep(self._follow())
        self._keep(self._keep_lease())
        self._keep(self._every(self._reread_s, self._reread))
        if self._options.offsets_interval_ms:
            self._keep(self._every(self._options.offsets_interval_ms / 1000, self._offsets.flush))
        if not self._lookup:
            self._freshness.begin(since)

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._freshness.end()
        if tasks and self._session.connected:
            await self._leave()
        await self._session.stop()
        self._views.close()

    async def _leave(self) -> None:
        """Write what waits and pass on what is led; what cannot be done in time happens as after a crash."""
        try:
            async with asyncio.timeout(LEAVE_WITHIN_S):
                await self._offsets.flush()
                others = self._mirror.brokers.keys() - {self.me.id}
                led = [(at, old) for at, old in self._mirror.partitions() if old.leader == self.me.id]
                heirs = [(at, old.epoch) for at, old in led if succession(old, others).leader in others]
                await together(self.resign(at, epoch) for at, epoch in heirs)
        except (CoordinationError, TimeoutError) as error:
            _LOG.warning("broker %s leaves without passing on all that it leads: %s", self.me.id, error)

    # --- following the tree -------------------------------------------------------------------------------

    def _watch_fired(self, path: str) -> None:
        self._mirror.mark(path)
        self._wake.set()

    def _connection_moved(self) -> None:
        self._mirror.mark_all()  # watches are lost with their connection
        self._wake.set()
        connected = self._session.connected
        if connected and not self._lookup:
            self._doubt.forget()
        if connected != self._was_connected and self._tasks:
            _LOG.warning("broker %s %s ZooKeeper", self.me.id, "reaches" if connected else "has lost")
        self._was_connected = connected

    async def _reread(self) -> None:
        self._mirror.mark_all()
        self._wake.set()

    async def _follow(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                if self._session.connected:
                    await self._catch_up()
            except BrokerIdTaken as taken:
                self._lose(taken)
                return
            except (CoordinationError, JournalFailed) as error:  # a session that cannot be noted is not entered with
                _LOG.warning("broker %s cannot follow ZooKeeper for now: %s", self.me.id, error)
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
            if self._registration.new and self.me.id in self._mirror.brokers:
                await self._give_up_lost()
            await self._controller.attend()
        if self.me.id not in self._mirror.brokers:
            self._vanished()
            raise Unavailable(f"the registration of broker {self.me.id} has vanished")
        self._publish()
        self._session.confirm(session_id)
        self._report_faults()

    async def _give_up_lost(self) -> None:
        """Where this broker's disk is new and the tree knows the broker from before: it has lost what it held. It is
        in sync no more, and a partition of which nobody else is has no leader until its topic is made again."""
        entered = self._mirror.entered_by[self.me.id]
        lost = [
            at
            for at, partition in self._mirror.partitions()
            if self.me.id in partition.in_sync and self._mirror.made_by[at] < entered
        ]
        for at in lost:
            with suppress(UnknownTopic):  # deleted meanwhile
                await self._change("register", at, lambda old: without(old, self.me.id))
        if lost:
            _LOG.error("%s", lost_disk(self.me.id, lost))
        self._registration.settled()

    def _report_faults(self) -> None:
        """Log what is wrong in the tree: once, and only what is still wrong when everything has been read."""
        faults = {str(fault) for fault in self._mirror.faults.values()}
        for fault in sorted(faults - self._reported):
            _LOG.error("%s", fault)
        self._reported = faults

    def _publish(self) -> None:
        mirror = self._mirror
        before = self.view().topics
        mirror.shown()
        self._views.publish(brokers=mirror.brokers, topics=mirror.topics, controller=mirror.controller)
        for name, topic in before.items():
            if name not in mirror.topics or mirror.topics[name].life != topic.life:
                self._lives_ended += 1
                self._offsets.forget_topic(name)

    async def _keep_lease(self) -> None:
        beat: asyncio.Task[None] | None = None
        while True:
            await asyncio.sleep(self._session.timeout_s / HEARTBEATS_IN_A_TIMEOUT)
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
        self._session.doubt()
        self._registered_in = 0
        self._wake.set()

    def _awake(self) -> None:
        """What is heard keeps the broker sure. While ZooKeeper is away the lease alone bounds how old that may be."""
        if self._session.connected:
            self._freshness.begin_hearing()
        elif self._doubt.sure:
            self._doubt.trust(self._clock(), self._doubt.naps)

    async def _hear(self) -> None:
        """ZooKeeper tells of changes before it answers what is asked later in the same session."""
        since, naps = self._clock(), self._doubt.naps
        await self._beat()
        if self._catching_up.locked() or self._mirror.stale or self._registered_in != self._session.id:
            await self._catch_up()
        self._doubt.trust(since, naps)

    async def _every(self, interval_s: float, work: Callable[[], Coroutine[None, None, None]]) -> None:
        while True:
            await asyncio.sleep(interval_s)
            await work()

    @property
    def client_cpu_ns(self) -> int:
        return self._session.client_cpu_ns

    # --- at this moment -----------------------------------------------------------------------------------

    @property
    def lease_ends(self) -> float:
        return self._session.lease_ends

    @property
    def standing(self) -> Standing:
        """Nobody else is elected while the session lasts under which an answer was had, and the registration in it."""
        return Standing(self._session.tenure, self._lives_ended)

    def _known_leader(self, at: TopicPartition) -> Partition | None:
        if self._lookup or at.topic not in self.view().topics or at.topic in self._mirror.changing:
            return None
        if self._mirror.faults and (fault := self._mirror.faults.get(self._tree.state(at))) is not None:
            raise fault
        return self.view().partition(at)

    async def _find_leader(self, at: TopicPartition) -> Partition:
        path = self._tree.state(at)
        node = await self._session.get("lookup", path) if topic_name_fault(at.topic) is None else None
        if node is None:
            node = await self._find_state(at, path)
        if self._mirror.made_by.get(at) != node.made_by:
            await self._mirror.read_topic(at.topic)  # made since, and perhaps not for the first time
            if (fault := self._mirror.faults.get(path)) is not None:
                raise fault
        read, seen = self._mirror.topics.get(at.topic), self.view().topics.get(at.topic)
        if read is not None and (seen is None or seen.life != read.life):
            self._publish()  # what is to be held of it can be opened
        return znodes.decode_state(path, node.data)

    async def _include(self, topic: str) -> None:
        """Have a topic in the view that another broker made a moment ago: what is to be held of it can be opened."""
        if topic not in self._mirror.topics:
            await self._mirror.read_topic(topic)
        if topic not in self.view().topics:  # it may be read already, and something else not yet
            self._publish()

    async def _find_topics(self, names: Collection[str]) -> None:
        await together(self._find_topic(name) for name in names)

    async def _find_topic(self, name: str) -> None:
        await self._include(name)
        if name not in self._mirror.topics:
            await self._session.sync("refresh", self._tree.topics)  # the server that was asked may lag
            await self._include(name)

    def _is_known(self, at: TopicPartition) -> bool:
        """False where only ZooKeeper can tell. Raises `UnknownTopic` for a partition that a known topic has not got."""
        return at.topic in self.view().topics and self.view().partition(at) is not None

    async def _check_exists(self, at: TopicPartition) -> None:
        if at.topic not in self.view().topics:
            await self._find_leader(at)
        self.view().partition(at)

    async def _find_state(self, at: TopicPartition, path: str) -> Node:
        """Of a partition that was not there when it was asked for first."""
        node = None
        if topic_name_fault(at.topic) is None:
            await self._session.sync("lookup", path)  # the server that was asked may lag behind the others
            node = await self._session.get("lookup", path)
        if node is None:
            raise UnknownTopic(f"{at.topic}-{at.partition} does not exist")
        return node

    # --- agreed -------------------------------------------------------------------------------------------

    async def _create_topic(
        self, name: str, partitions: int, replication_factor: int, settings: TopicSettings
    ) -> Creation:
        live = await self._topics.create(name, partitions, replication_factor, settings)
        try:
            await self._mirror.read_made(name)
        except Unavailable as error:
            raise OutcomeUnknown(f"topic {name!r} is made, and could not be read back: {error}") from error
        self._publish()
        if name not in self._mirror.topics:
            raise OutcomeUnknown(f"topic {name!r} was made, and is gone or damaged already")
        # The others ask ZooKeeper for a topic that they have not got.
        return Creation(self._mirror.topics[name], live | {self.me.id})

    async def _delete_topic(self, name: str) -> None:
        if topic_name_fault(name) is not None:
            raise UnknownTopic(f"topic {name!r} does not exist")
        await self._topics.delete(name)
        self._mirror.forget(name)
        self._publish()

    # --- compare and set ----------------------------------------------------------------------------------

    async def _change_in_sync(self, at: TopicPartition, in_sync: frozenset[int], epoch: int) -> Partition:
        return await self._change("change_in_sync", at, lambda old: with_in_sync(at, old, self.me.id, epoch, in_sync))

    async def _resign(self, at: TopicPartition, epoch: int) -> Partition:
        live = self._mirror.brokers
        self._session.tenure += 1
        return await self._change("resign", at, lambda old: resigned(at, old, self.me.id, epoch, live))

    async def _change(self, kind: str, at: TopicPartition, decide: Callable[[Partition], Partition]) -> Partition:
        """Read a partition's state, decide, and write at the version that was read; again if it changed meanwhile."""
        path = self._tree.state(at)
        for _ in range(CHANGE_TRIES_MAX):
            node = await self._session.get(kind, path) if topic_name_fault(at.topic) is None else None
            if node is None:
                break
            new = decide(znodes.decode_state(path, node.data))
            try:
                await self._session.commit(kind, Write(path, znodes.encode_state(new), node.version))
            except Changed:
                continue
            except Missing:
                break
            await self._include(at.topic)
            if at.topic in self._mirror.topics:
                self._mirror.put_state(at, new, node.version + 1)
                self._publish()
            return new
        else:
            raise Unavailable(f"{path} changed each of the {CHANGE_TRIES_MAX} times that it was to be written")
        raise UnknownTopic(f"{at.topic}-{at.partition} does not exist")


class KeptOffsets:
    """Rows of groups in ZooKeeper, and what is not written yet."""

    def __init__(self, rows: WrittenOffsets, groups: StoredGroups) -> None:
        self._rows = rows
        self._groups = groups
        self.begin_commit = rows.begin_commit
        self.committed = rows.committed
        self.stamp = groups.stamp

    async def stamps(self) -> Stamps:
        now_ms, stored = await self._groups.stamps()
        return Stamps(now_ms, {**stored, **dict.fromkeys(self._rows.groups_unwritten() & stored.keys(), now_ms)})

    async def forget(self, stamps: Mapping[str, int]) -> None:
        self._rows.forget_groups(stamps.keys())
        await self._groups.forget(stamps)
