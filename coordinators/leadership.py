"""How leadership passes, and what a leader may change. Pure, and the same rules in every architecture."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from coordinators.errors import InvalidRequest, StaleEpoch
from coordinators.model import NO_LEADER, Partition

if TYPE_CHECKING:
    from collections.abc import Collection

    from coordinators.model import TopicPartition, TopicSettings


def succession(partition: Partition, live: Collection[int]) -> Partition:
    """What a partition becomes, given who is live: itself while its leader is.

    The first live in-sync replica in placement order leads at the next epoch, and those that died are in sync no more.
    With none of them live nobody leads; all of them stay in sync, for any one holds everything that was acknowledged
    when the last of them died, and the first to come back leads again. Where nobody is in sync nobody ever leads.
    """
    if partition.leader in live:
        return partition
    heirs = tuple(replica for replica in partition.in_sync if replica in live)
    if heirs:
        return replace(partition, leader=heirs[0], epoch=partition.epoch + 1, in_sync=heirs)
    if partition.leader == NO_LEADER:
        return partition
    return replace(partition, leader=NO_LEADER, epoch=partition.epoch + 1)


def resigned(at: TopicPartition, partition: Partition, me: int, epoch: int, live: Collection[int]) -> Partition:
    """What a partition becomes when its leader gives it up. Raises `StaleEpoch`."""
    _check_leads(at, partition, me, epoch)
    return succession(partition, [broker for broker in live if broker != me])


def without(partition: Partition, lost: int) -> Partition:
    """What a partition becomes when a replica has lost its disk: it is in sync no more, and leads no more."""
    in_sync = tuple(replica for replica in partition.in_sync if replica != lost)
    if partition.leader != lost:
        return replace(partition, in_sync=in_sync)
    return replace(partition, leader=NO_LEADER, epoch=partition.epoch + 1, in_sync=in_sync)


def with_in_sync(at: TopicPartition, partition: Partition, me: int, epoch: int, in_sync: Collection[int]) -> Partition:
    """What a partition becomes when its leader changes who is in sync. Raises `StaleEpoch`, `InvalidRequest`."""
    _check_leads(at, partition, me, epoch)
    if me not in in_sync or not set(in_sync) <= set(partition.replicas):
        raise InvalidRequest(
            f"{at.topic}-{at.partition}: in sync are the leader and some of the replicas {partition.replicas}, "
            f"not {sorted(in_sync)}"
        )
    return replace(partition, in_sync=tuple(replica for replica in partition.replicas if replica in in_sync))


def enough_in_sync(partition: Partition, settings: TopicSettings, default: int) -> bool:
    """Whether messages that ask for all replicas in sync may be acknowledged; `default` is the broker's own bound."""
    return len(partition.in_sync) >= (settings.min_insync_replicas or default)


def _check_leads(at: TopicPartition, partition: Partition, me: int, epoch: int) -> None:
    if partition.leader != me or partition.epoch != epoch:
        raise StaleEpoch(
            f"broker {me} does not lead {at.topic}-{at.partition} at epoch {epoch}: "
            f"broker {partition.leader} does at {partition.epoch}"
        )
