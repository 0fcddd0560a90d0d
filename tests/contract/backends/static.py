from __future__ import annotations

from typing import TYPE_CHECKING

from coordinators.static import StaticCoordinator
from tests.contract.backend import Backend

if TYPE_CHECKING:
    from coordinators.api import Coordinator
    from coordinators.model import Broker


class StaticBackend(Backend):
    name = "static"
    shares = False
    passes_leadership = False

    def made(self, me: Broker) -> Coordinator:
        return StaticCoordinator(self.setup(me))

    async def kill(self, coordinator: Coordinator) -> None:
        """Nobody would notice."""


BACKENDS = [StaticBackend]
