"""Stores for tests that are about something else than how a store comes to hold what a view says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from brokers.log.config import LogConfig
from brokers.log.files import OS_FILES, Files
from brokers.replication.replica import Leadership, Replica
from brokers.replication.store import Store
from brokers.wire.batch import RecordToSend, encode_batch, parse_header
from coordinators.model import ClusterView


@asynccontextmanager
async def holding(
    folder: Path,
    view: ClusterView,
    me: int,
    config: LogConfig = LogConfig(),  # noqa: B008 # frozen
    files: Files = OS_FILES,
) -> AsyncIterator[Store]:
    """A store that has done what the view says."""
    store = Store(folder, config, me, files=files)
    await store.start(view)
    try:
        yield store
    finally:
        await store.close()


async def follow(store: Store, view: ClusterView) -> None:
    """Return when the store has done what the view says."""
    store.follow(view)
    await store.caught_up()


def found(store: Store, topic: str) -> Replica:
    """A topic's first partition."""
    partition = store.partition(topic, 0)
    assert partition is not None
    return partition


def led(replica: Replica) -> Leadership:
    """A leadership that never ends by itself."""
    return replica.lead(replica.partition, lambda: True)


def write(partition: Replica, value: bytes) -> None:
    batch = bytearray(encode_batch([RecordToSend(value)]))
    partition.append([(batch, parse_header(batch))], led(partition))
