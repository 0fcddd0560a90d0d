"""A large request's turn: while it holds up others (`wire/budget.py`), it has to become whole in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from brokers.wire.errors import Malformed, MalformedReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from brokers.listeners.service import Service
    from brokers.wire.framing import ReceiveBuffer


class Turn:
    """One connection's. `refuse` is called where its request has not come in time and others wait."""

    __slots__ = ("_incoming", "_refuse", "_service", "_timer")

    def __init__(self, service: Service, incoming: ReceiveBuffer, refuse: Callable[[Malformed], None]) -> None:
        self._service = service
        self._incoming = incoming
        self._refuse = refuse
        self._timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """A large request has come on, waits, or is over."""
        self._incoming.settle()
        first = self._incoming.has_right_of_way
        if self._timer is not None and not first:
            self.end()
        elif self._timer is None and first:
            turn_s = self._service.limits.turn_ms_max / 1000
            self._timer = asyncio.get_running_loop().call_later(turn_s, self._over)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _over(self) -> None:
        self._timer = None
        if self._service.budget.crowded:
            self._refuse(Malformed(MalformedReason.FRAME_BUDGET, "a request that others wait for did not come in time"))
        else:
            self.look()
