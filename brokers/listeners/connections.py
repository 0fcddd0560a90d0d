"""All connections of the Kafka listener: how many there may be, which are idle, and the tasks that work for them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from brokers.listeners.events import Event

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from brokers.listeners.connection import Connection
    from brokers.listeners.service import Service

T = TypeVar("T")
_SWEEPS_UNTIL_IDLE: Final = 4


class Connections:
    """`start` begins to look for idle connections; `stop` ends everything."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._open: set[Connection] = set()
        self._by_host: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._sweep_timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        interval_s = self._service.limits.idle_ms_max / 1000 / _SWEEPS_UNTIL_IDLE
        self._sweep_timer = asyncio.get_running_loop().call_later(interval_s, self._sweep)

    async def stop(self) -> None:
        """Close all connections, and wait for what they began."""
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for connection in tuple(self._open):
            connection.tell(Event.CLOSE)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def admit(self, connection: Connection) -> bool:
        """Whether there is room for one more."""
        limits, counts = self._service.limits, self._service.metrics.kafka
        self._open.add(connection)
        self._by_host[connection.host] += 1
        if (
            len(self._open) > limits.connections_max
            or self._by_host[connection.host] > limits.connections_per_address_max
        ):
            counts.connections_refused += 1
            return False
        counts.connections_made += 1
        counts.connections = len(self._open)
        return True

    def forget(self, connection: Connection) -> None:
        """It is closed."""
        self._open.discard(connection)
        self._by_host[connection.host] -= 1
        if not self._by_host[connection.host]:
            del self._by_host[connection.host]
        self._service.metrics.kafka.connections = len(self._open)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run something for a connection; it goes on if the connection ends, because others may depend on it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _sweep(self) -> None:
        """Close whoever has sent no whole request for long and waits for no answer, or does not read it; sooner, let it
        hold less. One that was closed and does not read what is due is closed without that."""
        for connection in tuple(self._open):
            owed = connection.swept()
            if connection.idle_sweeps > 1:
                connection.incoming.give_back()
            if connection.idle_sweeps > _SWEEPS_UNTIL_IDLE and not owed:
                self._service.metrics.kafka.connections_idle_closed += 1
                connection.tell(Event.GIVE_UP)
        self.start()
