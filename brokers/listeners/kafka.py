"""The Kafka listener: a port, and everything that its connections share."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Final

from brokers.addresses import PortInUse
from brokers.groups.groups import Groups
from brokers.listeners.connection import Connection
from brokers.listeners.connections import Connections
from brokers.listeners.service import Service
from brokers.replication.leaderships import Leaderships
from brokers.wire.budget import Budget

if TYPE_CHECKING:
    from brokers.config import TopicDefaults
    from brokers.listeners.config import ListenerLimits
    from brokers.metrics import Metrics
    from brokers.replication.store import Store
    from brokers.topics import TopicAdmin
    from coordinators.api import Coordinator

_BACKLOG: Final = 1024


class KafkaListener:
    """`start` returns when the port is open; `stop` when all connections are closed."""

    def __init__(
        self,
        coordinator: Coordinator,
        store: Store,
        topics: TopicAdmin,
        metrics: Metrics,
        defaults: TopicDefaults,
        limits: ListenerLimits,
    ) -> None:
        self.counts = metrics.kafka
        self.groups = Groups(limits.groups)
        budget = Budget(limits.large_requests_bytes_max, limits.frames.produce_bytes_max)
        leaderships = Leaderships(coordinator, store)
        self._service = Service(coordinator, leaderships, topics, self.groups, metrics, defaults, limits, budget)
        self._connections = Connections(self._service)
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> None:
        """Raises `PortInUse`, `OSError`."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._connection, host, port, backlog=_BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortInUse(f"cannot listen on {host}:{port}: it is in use") from error
            raise
        self._connections.start()

    def _connection(self) -> Connection:
        return Connection(self._service, self._connections)

    @property
    def port(self) -> int:
        """The port that was opened, where 0 asked for any."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Safe to call twice, and after a failed start."""
        if self._server is not None:
            self._server.close()
        self.groups.close()
        await self._connections.stop()
