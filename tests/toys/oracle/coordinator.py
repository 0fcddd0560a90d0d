"""A coordinator outside the product: `static`, whose brokers know no leader by heart: they ask, which takes time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from coordinators.static.coordinator import StaticCoordinator

if TYPE_CHECKING:
    from coordinators.model import Partition, TopicPartition
    from coordinators.registry import CoordinatorSetup


class OracleCoordinator(StaticCoordinator):
    def __init__(self, setup: CoordinatorSetup) -> None:
        super().__init__(replace(setup, options={}))
        self._pause_s = int(str(setup.options.get("pause_ms", 0))) / 1000

    def _known_leader(self, at: TopicPartition) -> Partition | None:
        return None

    async def _find_leader(self, at: TopicPartition) -> Partition:
        await asyncio.sleep(self._pause_s)
        self.meter.sent("lookup", 1)
        return self.view().partition(at)
