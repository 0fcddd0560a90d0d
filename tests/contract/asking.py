"""What the claims of the contract ask of a cluster, as its clients would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinators.model import Partition, TopicPartition
from tests.contract.backend import until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinators.api import Coordinator
    from coordinators.model import ClusterView

AT = TopicPartition("orders", 0)


async def led_by(coordinator: Coordinator, at: TopicPartition = AT) -> Partition:
    """Who leads, as the path of a produce finds it."""
    found = coordinator.leader(at)
    return found if isinstance(found, Partition) else await found


async def everywhere(coordinators: Sequence[Coordinator], at: TopicPartition = AT) -> set[Partition]:
    return {await led_by(coordinator, at) for coordinator in coordinators}


async def made_everywhere(coordinators: Sequence[Coordinator], replication_factor: int, partitions: int = 1) -> None:
    """As a client does: on each broker that does not certainly know the topic by then."""
    known: frozenset[int] = frozenset()
    for coordinator in coordinators:
        if coordinator.me.id not in known:
            known |= (await coordinator.create_topic(AT.topic, partitions, replication_factor)).known_to


def by_id(coordinators: Sequence[Coordinator], broker_id: int) -> Coordinator:
    return next(coordinator for coordinator in coordinators if coordinator.me.id == broker_id)


def others(coordinators: Sequence[Coordinator], one: Coordinator) -> list[Coordinator]:
    return [coordinator for coordinator in coordinators if coordinator is not one]


def leads(view: ClusterView, broker_id: int, at: TopicPartition = AT) -> bool:
    topic = view.topics.get(at.topic)
    return topic is not None and topic.partitions[at.partition].leader == broker_id


def home_of(coordinators: Sequence[Coordinator], group: str) -> Coordinator:
    return by_id(coordinators, coordinators[0].group_coordinator(group))


async def committing(coordinators: Sequence[Coordinator], group: str = "readers") -> Coordinator:
    """A topic of three partitions, and the broker that serves the group."""
    await made_everywhere(coordinators, 1, partitions=3)
    home = home_of(coordinators, group)
    await until(home, lambda view: AT.topic in view.topics)
    return home


async def all_in_sync(brokers: Sequence[Coordinator]) -> Partition:
    """Have the leader of a new topic say that all of its replicas hold what it does; at first none does."""
    before = await led_by(brokers[0])
    grown = await by_id(brokers, before.leader).change_in_sync(AT, before.replicas, before.epoch)
    for broker in brokers:
        await until(broker, lambda view: AT.topic in view.topics and view.partition(AT) == grown)
    return grown
