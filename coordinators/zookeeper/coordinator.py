"""`zookeeper` and `zookeeper-watch`: the contract's verbs as reads and writes of ZooKeeper's tree.

Two policies for who leads: look-ups ask ZooKeeper for every produce and fetch and keep nothing (the view follows the
tree only so that a broker opens the logs it is to hold and can describe the cluster); `watch` answers from the mirror,
and asks only for what the mirror has not got yet. `lookup` shares its questions, `lookup_each` does not.
"""

from __future__ import annotations

from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Final

from coordinators.api import Coordinator, Standing
from coordinators.errors import OutcomeUnknown, Unavailable, UnknownTopic
from coordinators.idleness import Stamps
from coordinators.leadership import resigned, with_in_sync
from coordinators.model import Creation, Partition, TopicPartition, topic_name_fault
from coordinators.offsets import NoJournal, OffsetTable
from coordinators.waits.look_ups import SeparateLookUps, SharedLookUps
from coordinators.zookeeper import znodes
from coordinators.zookeeper.follower import Follower, every
from coordinators.zookeeper.leaders import Leaders
from coordinators.zookeeper.mirror import Mirror
from coordinators.zookeeper.offsets import IntervalOffsets, MemoryOffsets, StoredGroups, WrittenOffsets
from coordinators.zookeeper.options import parse
from coordinators.zookeeper.registration import Registration
from coordinators.zookeeper.session import Session
from coordinators.zookeeper.topics import Topics

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from coordinators.model import TopicSettings
    from coordinators.registry import CoordinatorSetup

REREAD_S: Final = 30.0  # a watch that was lost unnoticed is made good within this


class ZooKeeperCoordinator(Coordinator):
    """`opened` makes the session: `Session`, or what a test puts between."""

    def __init__(
        self,
        setup: CoordinatorSetup,
        *,
        clock: Callable[[], float] = monotonic,
        reread_s: float = REREAD_S,
        opened: Callable[..., Session] = Session,
    ) -> None:
        """Raises `InvalidRequest` for an option."""
        self._options = parse(setup.options)
        self._lookup = self._options.metadata != "watch"
        super().__init__(
            setup.me,
            clock=clock,
            doubt_s=inf if self._lookup else self._options.doubt_ms / 1000,
            delay_us=self._options.delay_us,
            look_ups=SeparateLookUps if self._options.metadata == "lookup_each" else SharedLookUps,
        )
        self._journal = setup.journal
        self._reread_s = reread_s
        self._tree = znodes.Tree(self._options.chroot)
        self._session = opened(
            self._options.connect,
            timeout_ms=self._options.session_timeout_ms,
            auth=self._options.auth,
            meter=self.meter,
            clock=clock,
        )
        tree, me = self._tree, self.me.id
        self._mirror = Mirror(self._session, tree)
        self._leaders = Leaders(self._session, tree, self._mirror, self._views)
        self._topics = Topics(self._session, tree)
        if self._options.offsets == "memory":
            self._written: WrittenOffsets | None = None
            self._kept = self._in_memory()
        else:
            self._written = self._in_zookeeper()
            self._kept = KeptOffsets(self._written, StoredGroups(self._session, tree, self._serves_group))
        self._follower = Follower(self._session, tree, me, self._mirror, self._leaders)
        self._follower.on_taken = self._lose
        if not self._lookup:
            self._follower.on_reached = self._doubt.forget

    # --- what is committed --------------------------------------------------------------------------------

    def _serves_group(self, group: str) -> bool:
        return self.group_coordinator(group) == self.me.id

    def _in_memory(self) -> MemoryOffsets:
        table = OffsetTable(NoJournal(), self._life_of)
        self._leaders.on_life_ended = table.forget_topic
        return MemoryOffsets(table, self._leaders.is_known, self._leaders.check_exists)

    def _life_of(self, name: str) -> str | None:
        topic = self.view().topics.get(name)
        return None if topic is None else topic.life

    def _in_zookeeper(self) -> WrittenOffsets:
        session, leaders = self._session, self._leaders
        if self._options.offsets == "zookeeper_each":
            return WrittenOffsets(session, self._tree)
        found = IntervalOffsets(session, self._tree, leaders.is_known, leaders.check_exists, self._serves_group)
        leaders.on_life_ended = found.forget_topic
        return found

    async def _flush(self) -> None:
        if self._written is not None:
            await self._written.flush()

    # --- life ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        registration = Registration(self._session, self._tree, self.me, self._journal("zookeeper"))
        await self._session.start()
        since = self._clock()
        await self._follower.start(registration, self._reread_s)
        if self._options.offsets_interval_ms:
            self._follower.keep(every(self._options.offsets_interval_ms / 1000, self._flush))
        if not self._lookup:
            self._freshness.begin(since)

    async def stop(self) -> None:
        started = await self._follower.stop()
        await self._freshness.end()
        if started and self._session.connected:
            await self._follower.leave(self._flush, self.resign)
        await self._session.stop()
        self._views.close()

    def _awake(self) -> None:
        """What is heard keeps the broker sure. While ZooKeeper is away the lease alone bounds how old that may be."""
        if self._session.connected:
            self._freshness.begin_hearing()
        elif self._doubt.sure:
            self._doubt.trust(self._clock(), self._doubt.naps)

    async def _hear(self) -> None:
        since, naps = self._clock(), self._doubt.naps
        try:
            await self._follower.hear()
        except Unavailable:
            if self._session.connected or not self._doubt.sure:
                raise
            since = self._clock()  # ZooKeeper went away during the question: see `_awake`
        self._doubt.trust(since, naps)

    @property
    def client_cpu_ns(self) -> int:
        return self._session.client.cpu_ns

    # --- at this moment -----------------------------------------------------------------------------------

    @property
    def lease_ends(self) -> float:
        return self._session.lease.ends

    @property
    def standing(self) -> Standing:
        """Nobody else is elected while the session lasts under which an answer was had, and the registration in it."""
        return Standing(self._session.lease.tenure, self._leaders.lives_ended)

    def _known_leader(self, at: TopicPartition) -> Partition | None:
        return None if self._lookup else self._leaders.known(at)

    async def _find_leader(self, at: TopicPartition) -> Partition:
        return await self._leaders.find(at)

    async def _find_topics(self, names: Collection[str]) -> None:
        await self._leaders.find_topics(names)

    # --- agreed -------------------------------------------------------------------------------------------

    async def _create_topic(
        self, name: str, partitions: int, replication_factor: int, settings: TopicSettings
    ) -> Creation:
        live = await self._topics.create(name, partitions, replication_factor, settings)
        try:
            await self._mirror.topics.read_made(name)
        except Unavailable as error:
            raise OutcomeUnknown(f"topic {name!r} is made, and could not be read back: {error}") from error
        self._leaders.publish()
        if name not in self._mirror.topics.read:
            raise OutcomeUnknown(f"topic {name!r} was made, and is gone or damaged already")
        # The others ask ZooKeeper for a topic that they have not got.
        return Creation(self._mirror.topics.read[name], live | {self.me.id})

    async def _delete_topic(self, name: str) -> None:
        if topic_name_fault(name) is not None:
            raise UnknownTopic(f"topic {name!r} does not exist")
        await self._topics.delete(name)
        self._mirror.topics.forget(name)
        self._leaders.publish()

    # --- compare and set ----------------------------------------------------------------------------------

    async def _change_in_sync(self, at: TopicPartition, in_sync: frozenset[int], epoch: int) -> Partition:
        return await self._leaders.change(
            "change_in_sync", at, lambda old: with_in_sync(at, old, self.me.id, epoch, in_sync)
        )

    async def _resign(self, at: TopicPartition, epoch: int) -> Partition:
        live = self._mirror.brokers
        self._session.lease.tenure += 1
        return await self._leaders.change("resign", at, lambda old: resigned(at, old, self.me.id, epoch, live))


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
