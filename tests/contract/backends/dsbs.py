from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from coordinators.dsbs.coordinator import DsbsCoordinator
from tests.contract.backend import Backend

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from coordinators.api import Coordinator
    from coordinators.model import Broker

# Short, for the tests wait for deaths to be noticed; join_ms is what the first broker waits for the others.
OPTIONS: Final = {"heartbeat_ms": 50, "timeout_ms": 300, "suspicion_ms": 200, "join_ms": 150, "copy_ms": 20}


class Wires:
    """A network in memory: frames arrive in the next turn of the event loop."""

    def __init__(self) -> None:
        self.ends: dict[tuple[str, int], Callable[[bytes], None]] = {}

    def of(self, me: Broker) -> Wire:
        return Wire(self, me)


class Wire:
    def __init__(self, wires: Wires, me: Broker) -> None:
        self._wires = wires
        self._me = (me.host, me.rpc_port)

    def listen(self, deliver: Callable[[bytes], None]) -> None:
        self._wires.ends[self._me] = deliver

    def send(self, to: Broker, content: bytes) -> None:
        deliver = self._wires.ends.get((to.host, to.rpc_port))
        if deliver is not None and self._me in self._wires.ends:
            asyncio.get_running_loop().call_soon(deliver, content)


class DsbsBackend(Backend):
    name = "dsbs"
    options: ClassVar[dict[str, object]] = {}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._wires = Wires()

    def made(self, me: Broker) -> Coordinator:
        return DsbsCoordinator(replace(self.setup(me, **OPTIONS, **self.options), peers=self._wires.of(me)))

    async def kill(self, coordinator: Coordinator) -> None:
        self._wires.ends.pop((coordinator.me.host, coordinator.me.rpc_port))
        assert isinstance(coordinator, DsbsCoordinator)
        coordinator._shell.end("it was killed")


class InJournal(DsbsBackend):
    name = "dsbs-journal"
    options: ClassVar[dict[str, object]] = {"offsets": "journal"}
    passes_commits = False


class InMemory(DsbsBackend):
    name = "dsbs-memory"
    options: ClassVar[dict[str, object]] = {"offsets": "memory"}
    keeps_commits = passes_commits = False


BACKENDS = [DsbsBackend, InJournal, InMemory]
