"""The topics of a cluster that speaks Kafka's own protocol and no other, through Kafka's admin API."""

from __future__ import annotations

import asyncio
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, TypeVar

from workloads.clients.drivers.api import DriverError
from workloads.console import topics
from workloads.errors import BrokerlabError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from workloads.console.connection import Cluster

T = TypeVar("T")

LED_WITHIN_S: Final = 10.0
LOOK_EVERY_S: Final = 0.01


class KafkaTopics:
    """A system's answers (`workloads.systems.api`) about topics. Kafka bounds no fetch by messages."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def create(self, topic: str, partitions: int, replication_factor: int) -> None:
        await self._asked(lambda: self._create(topic, partitions, replication_factor))

    def _create(self, topic: str, partitions: int, replication_factor: int) -> None:
        """Kafka's brokers hear of a topic first, and then who leads it."""
        topics.create(self._cluster, topic, partitions, replication_factor, {})
        deadline = monotonic() + LED_WITHIN_S
        for broker in self._cluster.brokers().values():
            while not _is_led(broker, topic):
                if monotonic() > deadline:
                    raise DriverError(f"topic {topic!r} was made, and has no leaders after {LED_WITHIN_S:.0f} s")
                sleep(LOOK_EVERY_S)

    async def delete(self, topic: str) -> None:
        await self._asked(lambda: topics.delete(self._cluster, topic))

    async def end_offsets(self, topic: str) -> Mapping[int, int]:
        found = await self._asked(lambda: topics.describe(self._cluster, topic))
        return {row.partition: row.end_offset for row in found.partitions}

    async def leaders(self, topic: str) -> Mapping[int, int]:
        found = await self._asked(lambda: self._cluster.topic(topic))
        return {number: part.leader for number, part in found.partitions.items()}

    async def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(ask)
        except BrokerlabError as error:
            raise DriverError(str(error)) from error


def _is_led(broker: Cluster, topic: str) -> bool:
    """Whether the broker knows who leads each partition. A client may be answered by a broker other than the one that
    it was sent to, so that one of them has heard says little of the next."""
    found = broker.metadata().topics.get(topic)
    return found is not None and all(part.leader >= 0 for part in found.partitions.values())
