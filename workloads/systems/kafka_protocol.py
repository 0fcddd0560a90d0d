"""What Kafka's own protocol answers of a system, for those that are met through nothing else."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, TypeVar

from workloads.clients.drivers.api import DriverError
from workloads.console import topics
from workloads.errors import BrokerlabError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from workloads.clients.drivers.api import BrokerStatistics
    from workloads.console.connection import Cluster

T = TypeVar("T")

LED_WITHIN_S: Final = 10.0
LOOK_EVERY_S: Final = 0.01


class KafkaProtocol(ABC):
    """The part of a system (`workloads.systems.api`) that is no process: its topics, by Kafka's admin API, and what it
    does not tell. Kafka bounds no fetch by messages."""

    @property
    @abstractmethod
    def cluster(self) -> Cluster:
        """The brokers that can be asked now."""

    async def create_topic(self, topic: str, partitions: int, replication_factor: int, fetch_records_max: int) -> None:
        await _asked(lambda: _create(self.cluster, topic, partitions, replication_factor))

    async def delete_topic(self, topic: str) -> None:
        await _asked(lambda: topics.delete(self.cluster, topic))

    async def end_offsets(self, topic: str) -> Mapping[int, int]:
        return await _asked(lambda: topics.end_offsets(self.cluster, topic))

    async def leaders(self, topic: str) -> Mapping[int, int]:
        found = await _asked(lambda: self.cluster.topic(topic))
        return {number: part.leader for number, part in found.partitions.items()}

    async def statistics(self) -> Sequence[BrokerStatistics]:
        return ()

    async def stored(self, topic: str, into: Path) -> None:
        return None


async def _asked(ask: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(ask)
    except BrokerlabError as error:
        raise DriverError(str(error)) from error


def _create(cluster: Cluster, topic: str, partitions: int, replication_factor: int) -> None:
    """Kafka's brokers hear of a topic first, and then who leads it."""
    topics.create(cluster, topic, partitions, replication_factor, {})
    deadline = monotonic() + LED_WITHIN_S
    for broker in cluster.brokers().values():
        while not _is_led(broker, topic):
            if monotonic() > deadline:
                raise DriverError(f"topic {topic!r} was made, and has no leaders after {LED_WITHIN_S:.0f} s")
            sleep(LOOK_EVERY_S)


def _is_led(broker: Cluster, topic: str) -> bool:
    """Whether the broker knows who leads each partition. A client may be answered by a broker other than the one that
    it was sent to, so that one of them has heard says little of the next."""
    found = broker.metadata().topics.get(topic)
    return found is not None and all(part.leader >= 0 for part in found.partitions.values())
