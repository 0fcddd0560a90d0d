"""Over gRPC as on the Kafka wire: a replica that holds a partition and does not lead it takes and gives nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from brokers.log.config import LogConfig
from brokers.metrics import Metrics
from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.data import DataService
from brokers.store import Store
from coordinators.api import Coordinator
from coordinators.model import Broker, ClusterView, Partition, Topic, TopicPartition

CONTEXT: Any = None
MINE = Partition(replicas=(1, 2), leader=1, epoch=0, in_sync=(1,))
ANOTHERS = Partition(replicas=(1, 2), leader=2, epoch=1, in_sync=(2,))


class Says:
    """A coordinator that says who leads, at once or when it is awaited."""

    me = Broker(1, "127.0.0.1", 1, 2)

    def __init__(self) -> None:
        self.answer = MINE
        self.at_once = True

    def leader(self, at: TopicPartition) -> Partition | Awaitable[Partition]:
        return self.answer if self.at_once else self._found()

    async def _found(self) -> Partition:
        return self.answer


@pytest.fixture
def says() -> Says:
    return Says()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path, LogConfig(), Says.me.id)
    made.follow(ClusterView(1, {1: Says.me}, {"t": Topic("t", (MINE,))}))
    yield made
    made.close()


@pytest.fixture
def service(store: Store, says: Says) -> DataService:
    return DataService(store, cast("Coordinator", says), Metrics(), 1_000_000)


def produce(value: bytes) -> pb.ProduceRequest:
    return pb.ProduceRequest(topic="t", acks=1, records=[pb.Record(value=value)])


def end_offset(store: Store) -> int:
    held = store.partition("t", 0)
    assert held is not None
    return held.end_offset


@pytest.mark.parametrize("at_once", [True, False])
def test_a_replica_that_does_not_lead_refuses_what_it_would_serve_as_leader(
    service: DataService, store: Store, says: Says, at_once: bool
) -> None:
    says.at_once = at_once

    async def work() -> None:
        assert (await service.Produce(produce(b"as leader"), CONTEXT)).base_offset == 0
        assert [one.value for one in (await service.Fetch(pb.FetchRequest(topic="t"), CONTEXT)).records] == [
            b"as leader"
        ]
        says.answer = ANOTHERS
        refused = await service.Produce(produce(b"as follower"), CONTEXT)
        assert (refused.base_offset, refused.error.code, refused.error.definite) == (-1, pb.NOT_LEADER, True)
        fetched = await service.Fetch(pb.FetchRequest(topic="t"), CONTEXT)
        assert (fetched.error.code, list(fetched.records)) == (pb.NOT_LEADER, [])

    asyncio.run(work())
    assert end_offset(store) == 1


def test_a_stream_to_a_replica_that_does_not_lead_is_refused_message_by_message(
    service: DataService, store: Store, says: Says
) -> None:
    says.answer = ANOTHERS

    async def requests() -> AsyncIterator[pb.ProduceRequest]:
        for number in range(3):
            yield produce(b"%d" % number)

    async def work() -> list[int]:
        return [answer.error.code async for answer in service.ProduceStream(requests(), CONTEXT)]

    assert asyncio.run(work()) == [pb.NOT_LEADER] * 3
    assert end_offset(store) == 0
