"""A cluster that somebody else runs, by its addresses: nothing is started, stopped or measured from inside."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from workloads.console.connection import Cluster
from workloads.errors import UserError
from workloads.systems.kafka_topics import KafkaTopics
from workloads.systems.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from workloads.clients.drivers.api import BrokerStatistics
    from workloads.systems.api import SystemSetup


class External:
    """A system (`workloads.systems.api`) of the option `bootstrap`."""

    def __init__(self, setup: SystemSetup) -> None:
        self.nodes = Nodes()  # none of them is ours
        self._setup = setup
        self._addresses = str(dict(setup.architecture.options)["bootstrap"]).split(",")
        self._topics = KafkaTopics(Cluster(self._addresses))

    async def start(self) -> None:
        """Raises `UserError` where nobody answers, or another number of brokers than the file says."""
        brokers = await asyncio.to_thread(Cluster(self._addresses).brokers)
        if len(brokers) != self._setup.settings.brokers:
            raise UserError(
                f"architecture {self._setup.architecture.name!r} has {len(brokers)} brokers at "
                f"{','.join(self._addresses)}, not {self._setup.settings.brokers}, as the file says"
            )

    async def stop(self) -> None:
        """It goes on."""

    async def start_again(self, name: str) -> None:
        raise UserError(f"{name} is not ours to start")

    def bootstrap(self, driver: str) -> Sequence[str]:
        return self._addresses if driver == "kafka" else ()

    async def create_topic(self, topic: str, partitions: int, replication_factor: int, fetch_records_max: int) -> None:
        await self._topics.create(topic, partitions, replication_factor)

    async def delete_topic(self, topic: str) -> None:
        await self._topics.delete(topic)

    async def end_offsets(self, topic: str) -> Mapping[int, int]:
        return await self._topics.end_offsets(topic)

    async def leaders(self, topic: str) -> Mapping[int, int]:
        return await self._topics.leaders(topic)

    async def statistics(self) -> Sequence[BrokerStatistics]:
        return ()

    async def stored(self, topic: str, into: Path) -> None:
        return None
