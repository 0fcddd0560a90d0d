"""One broker, put together: coordination, partitions, listeners; started in order and stopped in the reverse."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Final

from brokers.addresses import check_host
from brokers.folder import locked, owned
from brokers.journal import FileJournal
from brokers.listeners.config import ListenerLimits
from brokers.listeners.kafka import KafkaListener
from brokers.log.config import FsyncPolicy
from brokers.log.errors import LogError
from brokers.metrics import Metrics
from brokers.rpc.admin import AdminService
from brokers.rpc.data import DataService
from brokers.rpc.peer import GrpcAsking, GrpcTransport, PeerService
from brokers.rpc.server import RpcServer
from brokers.rpc.tables import TablesService
from brokers.store import Store
from brokers.topics import TopicAdmin
from brokers.wire.framing import FrameLimits
from coordinators.config import CoordinatorSetup
from coordinators.registry import create

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from brokers.config import BrokerConfig, Limits
    from coordinators.api import Coordinator, Journal
    from coordinators.errors import CoordinationError


MAINTENANCE_S: Final = 10.0
_LOG: Final = logging.getLogger(__name__)


class BrokerProcess:
    """`start` returns when the broker serves; `stop` when everything is closed and on its way to the disk.

    Where its coordinator is lost for good, a broker does not stay to refuse everything: the task that started it is
    cancelled, as by a task group, and `stop` then raises why.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._closing = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loss: CoordinationError | None = None

    async def start(self) -> None:
        """Raises what the parts raise; what was started by then is stopped again."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        config, metrics = self._config, Metrics()
        await check_host(config.me.host)
        self._closing.callback(os.close, locked(config.data_dir))
        owned(config.data_dir, config.me.id)
        peers, asking = GrpcTransport(), GrpcAsking()
        self._closing.push_async_callback(peers.close)
        setup = CoordinatorSetup(config.me, config.brokers, self._journal, config.coordinator_options, peers, asking)
        coordinator = create(config.coordinator, setup)
        self._closing.push_async_callback(coordinator.stop)
        store = Store(config.data_dir, config.log, config.me.id, coordinator.view)
        self._closing.callback(store.close)
        topics = TopicAdmin(coordinator, store, config.limits.partitions_max)
        rpc = RpcServer(
            config.me,
            config.limits,
            DataService(store, coordinator, metrics, config.limits.message_bytes_max),
            AdminService(store, topics, coordinator, config.coordinator, metrics),
            PeerService(peers, asking),
            TablesService(coordinator),
        )
        self._closing.push_async_callback(rpc.stop)
        await rpc.start()  # before the coordinator: brokers that start together must be able to answer each other
        await coordinator.start()
        self._closing.push_async_callback(coordinator.stop)  # once more, and first: before its journals are closed
        store.follow(coordinator.view())
        kafka = KafkaListener(coordinator, store, topics, metrics, config.topics, _listener_limits(config.limits))
        self._closing.push_async_callback(kafka.stop)
        await kafka.start(config.me.host, config.me.kafka_port)
        self._keep(self._end_with(coordinator, asyncio.current_task()))
        self._keep(_follow(store, coordinator))
        self._keep(_maintain(store))
        if config.log.fsync is FsyncPolicy.INTERVAL:
            self._keep(_sync_every(store, config.log.fsync_interval_ms))

    def _journal(self, name: str) -> Journal:
        durable = self._config.log.fsync is FsyncPolicy.ALWAYS
        journal = FileJournal(self._config.data_dir / "journals" / f"{name}.journal", durable=durable)
        self._closing.callback(journal.close)
        return journal

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        self._tasks.add(asyncio.create_task(work))

    async def _end_with(self, coordinator: Coordinator, owner: asyncio.Task[object] | None) -> None:
        self._loss = await coordinator.lost()
        if owner is not None:
            owner.cancel()

    async def stop(self) -> None:
        """Raises the `CoordinationError` by which the broker ended itself, if it did."""
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._tasks.clear()
        await self._closing.aclose()
        if self._loss is not None:
            raise self._loss


async def _follow(store: Store, coordinator: Coordinator) -> None:
    """Hold what the cluster says, as it changes. A log that cannot be opened is tried again with the next change."""
    async for view in coordinator.views():
        try:
            store.follow(view)
        except LogError as error:
            _LOG.error("a partition cannot be opened: %s", error)


def _listener_limits(limits: Limits) -> ListenerLimits:
    return ListenerLimits(
        frames=FrameLimits(produce_bytes_max=limits.request_bytes_max),
        connections_max=limits.connections_max,
        connections_per_address_max=limits.connections_max,
        batch_bytes_max=limits.message_bytes_max,
        gather_ms=limits.gather_ms,
    )


async def _maintain(store: Store) -> None:
    while True:
        await asyncio.sleep(MAINTENANCE_S)
        await store.maintain()


async def _sync_every(store: Store, interval_ms: int) -> None:
    """`fsync: interval`. A partition whose disk fails refuses writes from then on and says why to its clients."""
    while True:
        await asyncio.sleep(interval_ms / 1000)
        await asyncio.gather(*(held.sync() for held in store.partitions), return_exceptions=True)
