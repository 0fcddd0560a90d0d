"""Topics made and deleted through this broker: agreed by the coordination layer, then held by the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokers.log.errors import LogDiskFailed
from coordinators.errors import InvalidRequest, JournalFailed

if TYPE_CHECKING:
    from brokers.replication.store import Store
    from coordinators.api import Coordinator
    from coordinators.model import Creation, TopicSettings


class TopicAdmin:
    def __init__(self, coordinator: Coordinator, store: Store, partitions_max: int) -> None:
        self._coordinator = coordinator
        self._store = store
        self._partitions_max = partitions_max

    async def create(self, name: str, partitions: int, replication_factor: int, settings: TopicSettings) -> Creation:
        """Make a topic; when this returns, what this broker holds of it can be written to. The other brokers open what
        they hold at the same time, and let requests wait for that.

        Raises what `Coordinator.create_topic` does, and `LogDiskFailed`, also where its journal was refused.
        """
        known = sum(len(topic.partitions) for topic in self._coordinator.view().topics.values())
        if known + partitions > self._partitions_max:  # each takes an open file on every broker that holds it
            raise InvalidRequest(
                f"topic {name!r}: {partitions} partitions, and there are {known} already; limits.partitions_max is "
                f"{self._partitions_max}"
            )
        try:
            creation = await self._coordinator.create_topic(name, partitions, replication_factor, settings)
        except JournalFailed as error:
            raise LogDiskFailed(str(error)) from error
        await self._follow(name)
        return creation

    async def delete(self, name: str) -> None:
        """Delete a topic; when this returns, nothing that this broker held of it can come back. Raises as `create`."""
        try:
            await self._coordinator.delete_topic(name)
        except JournalFailed as error:
            raise LogDiskFailed(str(error)) from error
        await self._follow(name)

    async def _follow(self, name: str) -> None:
        self._store.follow(self._coordinator.view())
        await self._store.caught_up(name)
