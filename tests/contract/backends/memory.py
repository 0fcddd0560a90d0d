from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.backend import Backend
from tests.contract.memory import MemoryCluster, MemoryCoordinator

if TYPE_CHECKING:
    from pathlib import Path

    from coordinators.api import Coordinator
    from coordinators.model import Broker


class MemoryBackend(Backend):
    name = "memory"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._cluster = MemoryCluster()

    def made(self, me: Broker) -> Coordinator:
        return MemoryCoordinator(me, self._cluster)

    async def kill(self, coordinator: Coordinator) -> None:
        self._cluster.expire(coordinator.me.id)


BACKENDS = [MemoryBackend]
