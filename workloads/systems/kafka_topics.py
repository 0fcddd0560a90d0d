"""The topics of a cluster that speaks Kafka's own protocol and no other, through Kafka's admin API."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from workloads.clients.drivers.api import DriverError
from workloads.console import topics
from workloads.errors import BrokerlabError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from workloads.console.connection import Cluster
    from workloads.console.topics import PartitionRow

T = TypeVar("T")


class KafkaTopics:
    """What a system (`workloads.systems.api`) is asked about topics. Kafka bounds no fetch by messages."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def create(self, topic: str, partitions: int, replication_factor: int) -> None:
        await self._asked(lambda: topics.create(self._cluster, topic, partitions, replication_factor, {}))

    async def delete(self, topic: str) -> None:
        await self._asked(lambda: topics.delete(self._cluster, topic))

    async def end_offsets(self, topic: str) -> Mapping[int, int]:
        return {row.partition: row.end_offset for row in await self._described(topic)}

    async def leaders(self, topic: str) -> Mapping[int, int]:
        return {row.partition: row.leader for row in await self._described(topic)}

    async def _described(self, topic: str) -> Sequence[PartitionRow]:
        return (await self._asked(lambda: topics.describe(self._cluster, topic))).partitions

    async def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(ask)
        except BrokerlabError as error:
            raise DriverError(str(error)) from error
