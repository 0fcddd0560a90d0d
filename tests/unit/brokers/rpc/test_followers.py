"""Over gRPC as on the Kafka wire: a replica that holds a partition and does not lead it takes and gives nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from brokers.metrics import Metrics
from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.data import DataService
from coordinators.model import Partition, TopicPartition
from tests.contract.backend import addressed, asynchronous
from tests.contract.memory import MemoryCluster, MemoryCoordinator
from tests.unit.brokers.replication.held import found, holding

CONTEXT: Any = None
OTHER = 2


class Deposed(MemoryCoordinator):
    """Another replica leads while `leads` is false, at a higher epoch; it is known here, or must be looked up."""

    leads = True
    looks_up = False

    def _answer(self, at: TopicPartition) -> Partition:
        partition = self.view().partition(at)
        return partition if self.leads else replace(partition, leader=OTHER, epoch=1)

    def _known_leader(self, at: TopicPartition) -> Partition | None:  # type: ignore[override] # as the contract allows
        return None if self.looks_up else self._answer(at)

    async def _find_leader(self, at: TopicPartition) -> Partition:
        return self._answer(at)


class Served(NamedTuple):
    service: DataService
    coordinator: Deposed

    async def produce(self, value: bytes) -> pb.ProduceResponse:
        return await self.service.Produce(produce(value), CONTEXT)

    async def fetch(self) -> pb.FetchResponse:
        return await self.service.Fetch(pb.FetchRequest(topic="t"), CONTEXT)


def produce(value: bytes) -> pb.ProduceRequest:
    return pb.ProduceRequest(topic="t", acks=1, records=[pb.Record(value=value)])


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Served]:
    coordinator = Deposed(addressed(1), MemoryCluster())
    await coordinator.start()
    await coordinator.create_topic("t", 1, 1)
    async with holding(folder, coordinator.view(), coordinator.me.id) as store:
        yield Served(DataService(store, coordinator, Metrics(), 1_000_000), coordinator)
        assert found(store, "t").log.end_offset == 1, "what was written as leader"
    await coordinator.stop()


@pytest.mark.parametrize("looks_up", [False, True])
@asynchronous
async def test_a_replica_that_does_not_lead_refuses_what_it_served_as_leader(tmp_path: Path, looks_up: bool) -> None:
    async with served(tmp_path) as one:
        one.coordinator.looks_up = looks_up
        assert (await one.produce(b"as leader")).base_offset == 0
        assert [record.value for record in (await one.fetch()).records] == [b"as leader"]
        one.coordinator.leads = False
        refused = await one.produce(b"as follower")
        assert (refused.base_offset, refused.error.code, refused.error.definite) == (-1, pb.NOT_LEADER, True)
        fetched = await one.fetch()
        assert (fetched.error.code, list(fetched.records)) == (pb.NOT_LEADER, [])


@pytest.mark.parametrize("looks_up", [False, True])
@asynchronous
async def test_a_stream_to_a_replica_that_does_not_lead_is_refused_message_by_message(
    tmp_path: Path, looks_up: bool
) -> None:
    async def requests() -> AsyncIterator[pb.ProduceRequest]:
        for number in range(3):
            yield produce(b"%d" % number)

    async with served(tmp_path) as one:
        one.coordinator.looks_up = looks_up
        await one.produce(b"as leader")
        one.coordinator.leads = False
        answers = [answer.error.code async for answer in one.service.ProduceStream(requests(), CONTEXT)]
        assert answers == [pb.NOT_LEADER] * 3
