"""A Kafka listener in this process on a real socket, over a coordinator whose answers the test can hold back."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any

from brokers.config import TopicDefaults
from brokers.journal import FileJournal
from brokers.listeners.config import ListenerLimits
from brokers.listeners.kafka import KafkaListener
from brokers.log.config import LogConfig
from brokers.log.files import OS_FILES, Files
from brokers.metrics import Metrics
from brokers.replication.store import Store
from brokers.topics import TopicAdmin
from coordinators.api import Standing
from coordinators.errors import CoordinationError
from coordinators.model import Broker, ClusterView, Partition, TopicPartition, TopicSettings
from coordinators.registry import CoordinatorSetup
from coordinators.static.coordinator import StaticCoordinator
from coordinators.waits.look_ups import Told

ME = Broker(0, "127.0.0.1", 1, 2)
TEST_S_MAX = 30


class HeldBack(StaticCoordinator):
    """Looks every leader up, as an architecture without metadata in the broker does; each answer waits for the test."""

    def __init__(self, setup: CoordinatorSetup) -> None:
        super().__init__(setup)
        self.asked: list[tuple[TopicPartition, asyncio.Future[Partition]]] = []
        self.requests = 0  # that had to ask
        self.knows = False
        self.tenure = 0
        self.lease = inf

    @property
    def lease_ends(self) -> float:
        return self.lease

    @property
    def standing(self) -> Standing:
        return Standing(self.tenure, 0)

    def _known_leader(self, at: TopicPartition) -> Partition | None:
        return super()._known_leader(at) if self.knows else None

    def ask_leader(self, at: TopicPartition, requests: int, told: Told) -> None:
        self.requests += requests
        super().ask_leader(at, requests, told)

    async def _find_leader(self, at: TopicPartition) -> Partition:
        answer: asyncio.Future[Partition] = asyncio.get_running_loop().create_future()
        self.asked.append((at, answer))
        return await answer

    def release(self, number: int) -> None:
        """Let one look-up have its answer, or the error that `static` has for it."""
        at, answer = self.asked[number]
        try:
            leader = super()._known_leader(at)
            assert leader is not None
            answer.set_result(leader)
        except CoordinationError as error:
            answer.set_exception(error)


@dataclass
class Harness:
    listener: KafkaListener
    coordinator: StaticCoordinator
    store: Store
    metrics: Metrics
    topics: TopicAdmin
    clients: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self) -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.listener.port)
        self.clients.append(writer)
        return Client(reader, writer)


@dataclass
class Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))

    async def receive(self) -> bytes:
        size = struct.unpack(">i", await self.reader.readexactly(4))[0]
        return await self.reader.readexactly(size)

    async def receive_all(self, count: int) -> list[bytes]:
        return [await self.receive() for _ in range(count)]

    async def ended(self) -> bool:
        """Wait for the end of the connection."""
        try:
            while await self.reader.read(65_536):
                pass
        except ConnectionResetError:
            pass
        return True


@asynccontextmanager
async def listening(
    folder: Path,
    *,
    limits: ListenerLimits = ListenerLimits(),  # noqa: B008 # frozen
    log: LogConfig = LogConfig(),  # noqa: B008 # frozen
    kind: type[StaticCoordinator] = StaticCoordinator,
    files: Files = OS_FILES,
) -> AsyncIterator[Harness]:
    """A listener with the topics `one` (a partition) and `two` (two partitions)."""
    journals = [FileJournal(folder / f"{name}.journal", durable=False) for name in ("topics", "offsets")]
    made = dict(zip(("topics", "offsets"), journals, strict=True))
    coordinator = kind(CoordinatorSetup(ME, (ME,), made.__getitem__, {}))
    await coordinator.start()
    store, metrics = Store(folder, log, ME.id, files=files), Metrics()
    topics = TopicAdmin(coordinator, store, partitions_max=4000)
    await topics.create("one", 1, 1, TopicSettings())
    await topics.create("two", 2, 1, TopicSettings())
    listener = KafkaListener(coordinator, store, topics, metrics, TopicDefaults(auto_create=True), limits)
    harness = Harness(listener, coordinator, store, metrics, topics)
    try:
        await listener.start("127.0.0.1", 0)
        yield harness
    finally:
        for writer in harness.clients:
            writer.close()
        await listener.stop()
        await coordinator.stop()
        await store.close()
        for journal in journals:
            journal.close()


def correlation(answer: bytes) -> int:
    return int(struct.unpack_from(">i", answer)[0])


def led_elsewhere(view: ClusterView, topic: str, other: int) -> ClusterView:
    """The same, but another broker leads the topic at the next epoch."""
    partitions = tuple(
        replace(partition, replicas=(ME.id, other), leader=other, epoch=partition.epoch + 1)
        for partition in view.topics[topic].partitions
    )
    topics = {**view.topics, topic: replace(view.topics[topic], partitions=partitions)}
    return replace(view, version=view.version + 1, topics=MappingProxyType(topics))


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, TEST_S_MAX))


async def until(holds: Callable[[], object]) -> None:
    """Let the loop run until `holds()`; the test's own bound ends a wait in vain."""
    while not holds():
        await turn()


async def turn() -> None:
    """Let the loop run once."""
    await asyncio.sleep(0)
