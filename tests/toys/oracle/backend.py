"""Its cluster for the suite of the contract."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.contract.backends.static import StaticBackend
from tests.toys.oracle.coordinator import OracleCoordinator

if TYPE_CHECKING:
    from coordinators.api import Coordinator
    from coordinators.model import Broker


class OracleBackend(StaticBackend):
    name = "oracle"

    def made(self, me: Broker) -> Coordinator:
        return OracleCoordinator(replace(self.setup(me), asking=self._questions.of(me)))


BACKENDS = [OracleBackend]
