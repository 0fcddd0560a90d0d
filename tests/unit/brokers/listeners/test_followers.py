"""A replica that does not lead takes and gives nothing, however it learns who does; and goes on when it leads again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from brokers.wire.apis.list_offsets import (
    EARLIEST,
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from brokers.wire.apis.table import ApiKey
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import decode
from coordinators.model import Partition, TopicPartition
from coordinators.registry import CoordinatorSetup
from coordinators.static.coordinator import StaticCoordinator
from tests.integration.kafka.raw import batch, fetch_request, fetched, produce_request, produced, request
from tests.unit.brokers.listeners.harness import ME, Client, Harness, listening, run

OTHER = 7
ACKNOWLEDGED = (0, 0)


class Deposed(StaticCoordinator):
    """Another replica leads while `leads` is false, at a higher epoch."""

    def __init__(self, setup: CoordinatorSetup) -> None:
        super().__init__(setup)
        self.leads = True

    def _answer(self, at: TopicPartition) -> Partition:
        found = self.view().partition(at)
        return found if self.leads else replace(found, leader=OTHER, epoch=1, replicas=(ME.id, OTHER))

    def _known_leader(self, at: TopicPartition) -> Partition:
        return self._answer(at)


class DeposedLookup(Deposed):
    """The same, of which each answer must be awaited."""

    def _known_leader(self, at: TopicPartition) -> Partition | None:  # type: ignore[override] # as the contract allows
        return None

    async def _find_leader(self, at: TopicPartition) -> Partition:
        return self._answer(at)


KINDS = pytest.mark.parametrize("kind", [Deposed, DeposedLookup])


def depose(harness: Harness) -> None:
    assert isinstance(harness.coordinator, Deposed)
    harness.coordinator.leads = False


def end_offset(harness: Harness) -> int:
    held = harness.store.partition("one", 0)
    assert held is not None
    return held.log.end_offset


async def offset_at(client: Client, timestamp: int, epoch: int = -1) -> tuple[int, int]:
    """Error and offset."""
    part = ListOffsetsPartition(partition_index=0, current_leader_epoch=epoch, timestamp=timestamp)
    message = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="one", partitions=(part,)),))
    client.send(request(ApiKey.LIST_OFFSETS, 5, message))
    answer: ListOffsetsResponse = decode(ListOffsetsResponse, 5, (await client.receive())[4:], flexible=False)
    found = answer.topics[0].partitions[0]
    return found.error_code, found.offset


@KINDS
def test_a_replica_that_does_not_lead_appends_nothing(tmp_path: Path, kind: type[Deposed]) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=kind) as harness:
            client = await harness.connect()
            client.send(produce_request("one", batch(b"as leader")))
            assert produced(await client.receive()) == ACKNOWLEDGED
            depose(harness)
            client.send(*(produce_request("one", batch(b"%09d" % number)) for number in range(20)))
            answers = [produced(await client.receive()) for _ in range(20)]
            assert answers == [(int(ErrorCode.NOT_LEADER_OR_FOLLOWER), -1)] * 20
            assert end_offset(harness) == 1

    run(work())


@KINDS
def test_a_replica_that_does_not_lead_gives_nothing_to_consumers(tmp_path: Path, kind: type[Deposed]) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=kind) as harness:
            client = await harness.connect()
            client.send(produce_request("one", batch(b"as leader")))
            await client.receive()
            depose(harness)
            client.send(fetch_request("one", 0))
            error, _, records = fetched(await client.receive())
            assert (error, records) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, b"")
            for timestamp in (EARLIEST, LATEST, 0):
                assert await offset_at(client, timestamp) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    run(work())


@KINDS
def test_a_request_that_names_an_epoch_is_served_at_that_epoch_alone(tmp_path: Path, kind: type[Deposed]) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=kind) as harness:
            client = await harness.connect()
            client.send(produce_request("one", batch(b"here")))
            await client.receive()
            for epoch, error in ((-1, 0), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)):
                client.send(fetch_request("one", 0, leader_epoch=epoch))
                found, _, records = fetched(await client.receive())
                assert (found, bool(records)) == (error, not error)
                assert await offset_at(client, LATEST, epoch) == (error, -1 if error else 1)

    run(work())
