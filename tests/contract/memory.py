"""The reference in one process, and everybody's fake: a cluster in memory, and any number of coordinators on it.

It passes the contract's suite as the others do, and lets a test do at once what takes others a timeout: cut a broker
off, declare it dead, let it come back, lose an answer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from coordinators.api import Coordinator
from coordinators.errors import BrokerIdTaken, OutcomeUnknown, TopicExists, Unavailable
from coordinators.idleness import Stamps
from coordinators.leadership import resigned, succession, with_in_sync
from coordinators.model import NO_LEADER, Creation, Topic, TopicPartition
from coordinators.placement import place
from coordinators.waits.look_ups import LookUps, SharedLookUps

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from coordinators.model import Broker, Committed, Partition, TopicSettings


class MemoryCluster:
    """What is agreed. `clock` and `lease_s` say how long a broker that is cut off may go on leading."""

    def __init__(self, *, clock: Callable[[], float] = monotonic, lease_s: float = inf) -> None:
        self.clock = clock
        self.lease_s = lease_s
        self.members: dict[int, MemoryCoordinator] = {}
        self.topics: dict[str, Topic] = {}
        self.lives: Counter[str] = Counter()  # that topics of a name have had
        self.offsets: dict[str, dict[TopicPartition, Committed]] = {}
        self.stamps: dict[str, int] = {}  # of groups, by `clock`, in ms
        self.groups_in: dict[str, set[str]] = {}  # a topic
        self._answers_to_lose: set[int] = set()

    # --- what a test may do -------------------------------------------------------------------------------

    def cut_off(self, broker_id: int) -> None:
        """The broker reaches nothing and learns of nothing any more; the others do not know it yet."""
        self.members[broker_id].lose_touch()

    def expire(self, broker_id: int) -> None:
        """The broker is dead to the others, cut off or not: what it led passes on."""
        member = self.members.pop(broker_id)
        member.lose_touch()
        self.changed()

    def lose_answer(self, broker_id: int) -> None:
        """The broker's next change happens, and it never hears of it."""
        self._answers_to_lose.add(broker_id)

    # --- what coordinators do -----------------------------------------------------------------------------

    def enter(self, member: MemoryCoordinator) -> None:
        present = self.members.get(member.me.id)
        if present not in {None, member}:
            raise BrokerIdTaken(f"broker id {member.me.id} is taken by {present.me if present else None}")
        self.members[member.me.id] = member
        self.changed()

    def leave(self, member: MemoryCoordinator) -> None:
        if self.members.get(member.me.id) is member:
            del self.members[member.me.id]
            self.changed()

    def changed(self, by: int = NO_LEADER) -> None:
        """Let leadership pass where it must, and tell everybody who can hear."""
        for name, topic in self.topics.items():
            partitions = tuple(succession(partition, self.members) for partition in topic.partitions)
            self.topics[name] = replace(topic, partitions=partitions)
        for member in self.members.values():
            member.hear()
        if by in self._answers_to_lose:
            self._answers_to_lose.remove(by)
            raise OutcomeUnknown("the answer was lost")

    def now_ms(self) -> int:
        return int(self.clock() * 1000)

    def forget_offsets(self, group: str, ats: Collection[TopicPartition]) -> None:
        """The group goes with the last of them."""
        rows = self.offsets[group]
        for at in ats:
            del rows[at]
        if not rows:
            del self.offsets[group], self.stamps[group]

    def put(self, at: TopicPartition, partition: Partition) -> None:
        topic = self.topics[at.topic]
        before, after = topic.partitions[: at.partition], topic.partitions[at.partition + 1 :]
        self.topics[at.topic] = replace(topic, partitions=(*before, partition, *after))


class MemoryCoordinator(Coordinator):
    def __init__(self, me: Broker, cluster: MemoryCluster, look_ups: type[LookUps] = SharedLookUps) -> None:
        super().__init__(me, clock=cluster.clock, look_ups=look_ups)
        self._cluster = cluster
        self._in_touch = False
        self._touched_at = -inf
        self._kept = KeptOffsets(self, cluster)

    async def start(self) -> None:
        """Again after `MemoryCluster.cut_off` or `expire`: the broker is back."""
        self._in_touch = True
        self._cluster.enter(self)

    async def stop(self) -> None:
        if self._in_touch:
            self._cluster.leave(self)
        self.lose_touch()
        self._views.close()

    def lose_touch(self) -> None:
        if self._in_touch:
            self._in_touch = False
            self._touched_at = self._clock()

    def hear(self) -> None:
        """The cluster has changed."""
        if self._in_touch:
            brokers = {broker_id: member.me for broker_id, member in self._cluster.members.items()}
            self._views.publish(brokers=brokers, topics=self._cluster.topics, controller=min(brokers))

    def reach(self) -> None:
        if not self._in_touch:
            raise Unavailable(f"broker {self.me.id} is cut off")

    @property
    def lease_ends(self) -> float:
        return (self._clock() if self._in_touch else self._touched_at) + self._cluster.lease_s

    def _known_leader(self, at: TopicPartition) -> Partition:
        return self.view().partition(at)

    async def _find_leader(self, at: TopicPartition) -> Partition:
        return self._known_leader(at)

    async def _create_topic(
        self, name: str, partitions: int, replication_factor: int, settings: TopicSettings
    ) -> Creation:
        self.reach()
        if name in self._cluster.topics:
            raise TopicExists(f"topic {name!r} exists")
        self._cluster.lives[name] += 1
        placed = place(name, partitions, replication_factor, self._cluster.members)
        topic = Topic(name, placed, settings, life=str(self._cluster.lives[name]))
        self._cluster.topics[name] = topic
        self._cluster.changed(self.me.id)
        return Creation(topic, frozenset(self._cluster.members))

    async def _delete_topic(self, name: str) -> None:
        self.reach()
        self.view().topic(name)
        del self._cluster.topics[name]
        for group in self._cluster.groups_in.pop(name, ()):
            self._cluster.forget_offsets(group, [at for at in self._cluster.offsets[group] if at.topic == name])
        self._cluster.changed(self.me.id)

    async def _change_in_sync(self, at: TopicPartition, in_sync: frozenset[int], epoch: int) -> Partition:
        self.reach()
        return self._put(at, with_in_sync(at, self.view().partition(at), self.me.id, epoch, in_sync))

    async def _resign(self, at: TopicPartition, epoch: int) -> Partition:
        self.reach()
        return self._put(at, resigned(at, self.view().partition(at), self.me.id, epoch, self._cluster.members))

    def _put(self, at: TopicPartition, partition: Partition) -> Partition:
        self._cluster.put(at, partition)
        self._cluster.changed(self.me.id)
        return partition


class KeptOffsets:
    """What groups committed anywhere in the cluster, as one member reaches it."""

    def __init__(self, member: MemoryCoordinator, cluster: MemoryCluster) -> None:
        self._member = member
        self._cluster = cluster

    async def begin_commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        self._member.reach()
        for at in offsets:
            self._member.view().partition(at)
        self._cluster.offsets.setdefault(group, {}).update(offsets)
        self._cluster.stamps[group] = self._cluster.now_ms()
        for at in offsets:
            self._cluster.groups_in.setdefault(at.topic, set()).add(group)

    async def committed(self, group: str) -> Mapping[TopicPartition, Committed]:
        self._member.reach()
        return dict(self._cluster.offsets.get(group, {}))

    async def stamps(self) -> Stamps:
        self._member.reach()
        me = self._member.me.id
        served = {g: at_ms for g, at_ms in self._cluster.stamps.items() if self._member.group_coordinator(g) == me}
        return Stamps(self._cluster.now_ms(), served)

    async def stamp(self, group: str) -> None:
        self._member.reach()
        self._cluster.stamps[group] = self._cluster.now_ms()

    async def forget(self, stamps: Mapping[str, int]) -> None:
        self._member.reach()
        for group in [group for group, at_ms in stamps.items() if self._cluster.stamps.get(group) == at_ms]:
            for at in self._cluster.offsets[group]:
                self._cluster.groups_in[at.topic].discard(group)
            self._cluster.forget_offsets(group, list(self._cluster.offsets[group]))
