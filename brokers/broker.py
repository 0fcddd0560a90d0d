"""One broker, put together: coordination, partitions, listeners; started in order and stopped in the reverse."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

from brokers.addresses import check_host
from brokers.folder import locked, of_this_layout, owned
from brokers.journal import FileJournal
from brokers.listeners.config import ListenerLimits
from brokers.listeners.kafka import KafkaListener
from brokers.log.config import FsyncPolicy
from brokers.metrics import Metrics
from brokers.replication.partition_folders import lives_on_disk
from brokers.replication.store import Store
from brokers.rpc.admin import AdminService
from brokers.rpc.data import DataService
from brokers.rpc.peer import GrpcAsking, GrpcTransport, PeerService
from brokers.rpc.server import RpcServer
from brokers.rpc.tables import TablesService
from brokers.topics import TopicAdmin
from brokers.wire.framing import FrameLimits
from coordinators.errors import CoordinationError, JournalFailed
from coordinators.registry import CoordinatorSetup, create

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from brokers.config import BrokerConfig, Limits
    from brokers.groups.groups import Groups
    from coordinators.api import Coordinator
    from coordinators.registry import Journal


MAINTENANCE_S: Final = 10.0
EXPIRY_PARTS: Final = 8  # so many times in the retention of offsets, and each hour, it is seen which groups go
EXPIRY_S_MIN: Final = 0.1
EXPIRY_S_MAX: Final = 3600.0
_LOG: Final = logging.getLogger(__name__)


class BrokerProcess:
    """`start` returns when the broker serves; `stop` when everything is closed and on its way to the disk.

    Where its coordinator is lost for good, a broker does not stay to refuse everything: the task that started it is
    cancelled, as by a task group, and `stop` then raises why.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._metrics = Metrics()
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
        config, metrics = self._config, self._metrics
        await check_host(config.me.host)
        self._closing.callback(os.close, locked(config.data_dir))
        owned(config.data_dir, config.me.id)
        of_this_layout(config.data_dir)
        peers, asking = GrpcTransport(config.me), GrpcAsking()
        self._closing.push_async_callback(peers.close)
        lives = partial(lives_on_disk, config.data_dir)
        setup = CoordinatorSetup(
            config.me, config.brokers, self._journal, config.coordinator_options, peers, asking, lives
        )
        coordinator = create(config.coordinator, setup)
        self._closing.push_async_callback(coordinator.stop)
        store = Store(config.data_dir, config.log, config.me.id, coordinator.view, notices=metrics.notices)
        self._closing.push_async_callback(store.close)
        topics = TopicAdmin(coordinator, store, config.limits.partitions_max)
        rpc = RpcServer(
            config.me,
            config.limits,
            DataService(
                store, coordinator, metrics, config.limits.message_bytes_max, config.topics.min_insync_replicas
            ),
            AdminService(store, topics, coordinator, config.coordinator, metrics),
            PeerService(peers, asking),
            TablesService(coordinator),
        )
        self._closing.push_async_callback(rpc.stop)
        await rpc.start()  # before the coordinator: brokers that start together must be able to answer each other
        await coordinator.start()
        self._closing.push_async_callback(coordinator.stop)  # once more, and first: before its journals are closed
        await store.start(coordinator.view())
        kafka = KafkaListener(coordinator, store, topics, metrics, config.topics, _listener_limits(config.limits))
        self._closing.push_async_callback(kafka.stop)
        await kafka.start(config.me.host, config.me.kafka_port)
        self._keep(self._end_with(coordinator, asyncio.current_task()))
        self._keep(_follow(store, coordinator))
        self._keep(_maintain(store))
        self._keep(_expire_groups(coordinator, kafka.groups, config.offsets.retention_ms))
        if config.log.fsync is FsyncPolicy.INTERVAL:
            self._keep(_sync_every(store, config.log.fsync_interval_ms))

    def _journal(self, name: str) -> Journal:
        durable = self._config.log.fsync is FsyncPolicy.ALWAYS
        path = self._config.data_dir / "journals" / f"{name}.journal"
        journal = FileJournal(path, durable=durable, notices=self._metrics.notices)
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
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self._closing.aclose()
        if self._loss is not None:
            raise self._loss
        for bug in ended:  # it ended that task long ago; the logs are closed in order nevertheless
            if isinstance(bug, Exception):
                raise bug


async def _follow(store: Store, coordinator: Coordinator) -> None:
    """Hold what the cluster says, as it changes."""
    async for view in coordinator.views():
        store.follow(view)


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


async def _expire_groups(coordinator: Coordinator, groups: Groups, retention_ms: int) -> None:
    """Expire the offsets of unused groups. A group that cannot be expired now is expired later."""
    while True:
        await asyncio.sleep(min(max(retention_ms / 1000 / EXPIRY_PARTS, EXPIRY_S_MIN), EXPIRY_S_MAX))
        try:
            await coordinator.expire_groups(retention_ms, groups.all().keys())
        except (CoordinationError, JournalFailed) as error:
            _LOG.warning("broker: groups that nobody uses cannot be forgotten for now: %s", error)


async def _sync_every(store: Store, interval_ms: int) -> None:
    """`fsync: interval`."""
    while True:
        await asyncio.sleep(interval_ms / 1000)
        await store.sync()
