"""A cluster that somebody else runs, by its addresses: nothing is started, stopped or measured from inside."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from workloads.clients.drivers.api import DriverError
from workloads.console.connection import Cluster
from workloads.errors import UserError
from workloads.systems.kafka_protocol import KafkaProtocol
from workloads.systems.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.systems.api import SystemSetup


class External(KafkaProtocol):
    """A system (`workloads.systems.api`) of the option `bootstrap`."""

    def __init__(self, setup: SystemSetup) -> None:
        self.nodes = Nodes()  # none of them is ours
        self._setup = setup
        self._addresses = str(dict(setup.architecture.options)["bootstrap"]).split(",")
        self._made: set[str] = set()  # topics that are still there

    async def start(self) -> None:
        """Raises `UserError` where nobody answers, or another number of brokers than the file says."""
        brokers = await asyncio.to_thread(self.cluster.brokers)
        if len(brokers) != self._setup.settings.brokers:
            raise UserError(
                f"architecture {self._setup.architecture.name!r} has {len(brokers)} brokers at "
                f"{','.join(self._addresses)}, not {self._setup.settings.brokers}, as the file says"
            )

    async def stop(self) -> None:
        """It goes on, without the topics of trials that came to no end."""
        for topic in sorted(self._made):
            with suppress(DriverError):  # it cannot be reached, or was never made
                await self.delete_topic(topic)
        self._made.clear()

    async def start_again(self, name: str) -> None:
        raise UserError(f"{name} is not ours to start")

    def bootstrap(self, driver: str) -> Sequence[str]:
        return self._addresses if driver == "kafka" else ()

    async def create_topic(self, topic: str, partitions: int, replication_factor: int, fetch_records_max: int) -> None:
        self._made.add(topic)
        await super().create_topic(topic, partitions, replication_factor, fetch_records_max)

    async def delete_topic(self, topic: str) -> None:
        await super().delete_topic(topic)
        self._made.discard(topic)

    @property
    def cluster(self) -> Cluster:
        return Cluster(self._addresses)
