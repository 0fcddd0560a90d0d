"""What the tables say of topics and who leads them, and the rows that change it. Pure.

Succession: who leads next is `leadership.succession`'s rule, the same in every architecture; each broker computes it
from its own tables, and the heir alone acts on it. In a partition of the network two brokers may each believe
themselves heir. So that they never lead at the same epoch, a partition's epochs are dealt out: the replica at place i
of n leads at epochs e with e mod n = i only. Followers and logs can then tell any two leaders apart, always.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Final

from coordinators import leadership
from coordinators.dsbs.tables.rows import LeaderRow, TopicRow
from coordinators.errors import InvalidRequest, TopicExists, UnknownTopic
from coordinators.model import DEFAULT_SETTINGS, NO_LEADER, Partition, Topic, TopicPartition, TopicSettings
from coordinators.placement import new_partition, place

if TYPE_CHECKING:
    from collections.abc import Collection

    from coordinators.dsbs.tables.tables import Table
    from coordinators.model import Broker


# A disk that was lost may have known epochs that nobody else has heard of: what it said at them is not to come back.
EPOCHS_LOST: Final = 1000


def own_epoch(after: int, place_: int, replicas: int) -> int:
    """The first epoch above `after` that belongs to the replica at `place_`."""
    return after + 1 + (place_ - after - 1) % replicas


def live_brokers(table: Table) -> dict[int, Broker]:
    return {number: row.broker for number, row in table.members.items() if row.live}


def is_live(table: Table, broker: int) -> bool:
    row = table.members.get(broker)
    return row is not None and row.live


def recorded(table: Table, topic: TopicRow, number: int) -> Partition:
    """A partition as the tables have it, whether its leader lives or not."""
    replicas = topic.replicas[number]
    row = table.leader(topic.name, number)
    if row is None or not _fits(row, topic, replicas):
        return new_partition(replicas)
    return Partition(replicas, row.leader, row.epoch, row.in_sync)


def _fits(row: LeaderRow, topic: TopicRow, replicas: tuple[int, ...]) -> bool:
    return (row.generation, row.creator) == (topic.generation, topic.creator) and set(row.in_sync) <= set(replicas)


def seen(table: Table, topic: TopicRow, number: int) -> Partition:
    """A partition as clients are told of it: a leader that is dead leads nothing."""
    partition = recorded(table, topic, number)
    return partition if is_live(table, partition.leader) else replace(partition, leader=NO_LEADER)


def topic_seen(table: Table, name: str) -> Topic | None:
    row = table.topics.get(name)
    if row is None or row.deleted:
        return None
    partitions = tuple(seen(table, row, number) for number in range(len(row.replicas)))
    return Topic(name, partitions, row.settings, life=_life(row.generation, row.creator))


# --- rows that change something ---------------------------------------------------------------------------


def _life(generation: int, creator: int) -> str:
    return f"{generation}.{creator}"


def creation(
    table: Table,
    me: int,
    name: str,
    partitions: int,
    replication_factor: int,
    settings: TopicSettings,
    taken: Collection[str] = (),
) -> TopicRow:
    """A row of none of the lives that are `taken`. Raises `TopicExists`, `NotEnoughBrokers`, `InvalidRequest`."""
    held = table.topics.get(name)
    if held is not None and not held.deleted:
        raise TopicExists(f"topic {name!r} exists")
    placed = place(name, partitions, replication_factor, live_brokers(table))
    first = 1 if held is None else held.generation + 1
    generation = next(number for number in count(first) if _life(number, me) not in taken)
    row = TopicRow(name, generation, me, tuple(partition.replicas for partition in placed), settings)
    if (fault := row.fault() or table.room_for(row)) is not None:
        raise InvalidRequest(f"topic {name!r}: {fault}")
    return row


def deletion(table: Table, me: int, name: str) -> TopicRow:
    """The tombstone. Raises `UnknownTopic`."""
    held = live_topic(table, name)
    return TopicRow(name, held.generation, me, replicas=(), settings=DEFAULT_SETTINGS, deleted=True)


def live_topic(table: Table, name: str) -> TopicRow:
    """Raises `UnknownTopic`."""
    row = table.topics.get(name)
    if row is None or row.deleted:
        raise UnknownTopic(f"topic {name!r} is not known here")
    return row


def inheritance(table: Table, topic: TopicRow, number: int, me: int) -> LeaderRow | None:
    """The row by which `me` takes over a partition, where its leader is dead and `me` is the heir; else None."""
    partition = recorded(table, topic, number)
    if is_live(table, partition.leader):
        return None
    live = [replica for replica in partition.replicas if is_live(table, replica)]
    heir = leadership.succession(partition, live)
    return _row(table, topic, number, partition, heir) if heir.leader == me else None


def renewal(table: Table, topic: TopicRow, number: int, me: int) -> LeaderRow | None:
    """The row by which `me`, restarted, goes on leading what it led: at a new epoch, because its log may be shorter."""
    partition = recorded(table, topic, number)
    return _row(table, topic, number, partition, partition) if partition.leader == me else None


def loss(table: Table, topic: TopicRow, number: int, me: int) -> LeaderRow | None:
    """The row by which `me`, whose disk was lost, holds a partition no more; None where another leads it, who alone
    says who is in sync with it."""
    partition = recorded(table, topic, number)
    if me not in partition.in_sync or partition.leader not in {me, NO_LEADER}:
        return None
    return _row(table, topic, number, partition, leadership.without(partition, me), writer=me, skipped=EPOCHS_LOST)


def in_sync_changed(table: Table, at: TopicPartition, me: int, epoch: int, in_sync: Collection[int]) -> LeaderRow:
    """Raises `UnknownTopic`, `StaleEpoch`, `InvalidRequest`."""
    topic, partition = _partition(table, at)
    changed = leadership.with_in_sync(at, partition, me, epoch, in_sync)
    held = table.leader(at.topic, at.partition)
    version = 1 if held is None or held.epoch != epoch else held.version + 1
    return _leader_row(topic, at.partition, changed, version)


def resignation(table: Table, at: TopicPartition, me: int, epoch: int) -> LeaderRow:
    """Raises `UnknownTopic`, `StaleEpoch`."""
    topic, partition = _partition(table, at)
    live = [replica for replica in partition.replicas if is_live(table, replica)]
    return _row(table, topic, at.partition, partition, leadership.resigned(at, partition, me, epoch, live))


def _partition(table: Table, at: TopicPartition) -> tuple[TopicRow, Partition]:
    topic = live_topic(table, at.topic)
    if not 0 <= at.partition < len(topic.replicas):
        raise UnknownTopic(f"{at.topic}-{at.partition} is not known here")
    return topic, recorded(table, topic, at.partition)


def _row(
    table: Table,
    topic: TopicRow,
    number: int,
    before: Partition,
    after: Partition,
    writer: int | None = None,
    skipped: int = 0,
) -> LeaderRow:
    """`after` at the next epoch that its leader may have; that nobody leads is said at one of the old leader's, or of
    the `writer`'s."""
    if writer is None:
        writer = before.leader if after.leader == NO_LEADER else after.leader
    held = table.leader(topic.name, number)
    highest = skipped + (before.epoch if held is None else max(before.epoch, held.epoch))
    epoch = own_epoch(highest, before.replicas.index(writer), len(before.replicas))
    return _leader_row(topic, number, replace(after, epoch=epoch), version=0)


def _leader_row(topic: TopicRow, number: int, partition: Partition, version: int) -> LeaderRow:
    birth = (topic.generation, topic.creator)
    return LeaderRow(topic.name, number, *birth, partition.epoch, version, partition.leader, partition.in_sync)
