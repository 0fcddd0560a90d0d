"""Kafka clients of a partition whose log is still being opened: they wait, or are told what they retry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from brokers.log.errors import LogDiskFailed
from brokers.wire.apis.list_offsets import (
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from brokers.wire.apis.table import ApiKey
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import decode
from coordinators.model import TopicSettings
from tests.integration.kafka.raw import batch, fetch_request, fetched, produce_request, produced, request
from tests.unit.brokers.listeners.harness import Client, Harness, led_elsewhere, listening, run, turn, until
from tests.unit.brokers.log.slow_files import SlowFiles

MANY_TURNS = 200
OTHER = 7


def is_late(call: str, argument: object) -> bool:
    return isinstance(argument, Path) and argument.parent.parent.name == "late"


@asynccontextmanager
async def opening(folder: Path, disk: SlowFiles) -> AsyncIterator[tuple[Harness, Client]]:
    """A broker that knows a topic, as from another broker, and whose disk has not opened it yet."""
    async with listening(folder, files=disk) as harness:
        await harness.coordinator.create_topic("late", 1, 1, TopicSettings())
        harness.store.follow(harness.coordinator.view())
        await asyncio.to_thread(disk.reached.acquire)
        try:
            yield harness, await harness.connect()
        finally:
            disk.let_go()


def list_offsets() -> bytes:
    topics = (ListOffsetsTopic(name="late", partitions=(ListOffsetsPartition(partition_index=0, timestamp=LATEST),)),)
    return request(ApiKey.LIST_OFFSETS, 5, ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics))


def test_requests_for_a_log_that_is_not_open_yet_wait_for_it_and_others_are_served(tmp_path: Path) -> None:
    async def work() -> None:
        disk = SlowFiles(is_late)
        async with opening(tmp_path, disk) as (harness, client):
            client.send(produce_request("late", batch(b"first")), fetch_request("late", 0), list_offsets())
            asked = asyncio.create_task(client.receive_all(3))
            other = await harness.connect()
            other.send(produce_request("one", batch(b"others")))
            assert produced(await other.receive()) == (0, 0)
            for _ in range(MANY_TURNS):
                await turn()
            assert not asked.done()
            disk.let_go()
            answers = await asked
            assert produced(answers[0]) == (0, 0)
            assert b"first" in fetched(answers[1])[2]
            row = decode(ListOffsetsResponse, 5, answers[2][4:], flexible=False).topics[0].partitions[0]
            assert (row.error_code, row.offset) == (0, 1)

    run(work())


def test_a_log_that_takes_long_to_open_is_answered_with_what_clients_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.replication.store.OPENED_WITHIN_S", 0.01)

    async def work() -> None:
        async with opening(tmp_path, SlowFiles(is_late)) as (_, client):
            client.send(produce_request("late", batch(b"first")))
            assert produced(await client.receive())[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
            client.send(fetch_request("late", 0))
            assert fetched(await client.receive())[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(work())


def test_who_waits_for_a_log_to_open_waits_no_longer_than_this_broker_leads(tmp_path: Path) -> None:
    async def work() -> None:
        async with opening(tmp_path, SlowFiles(is_late)) as (harness, client):
            client.send(produce_request("late", batch(b"first")))
            await until(lambda: harness.store._openings.all[0]._requests)
            harness.store.follow(led_elsewhere(harness.coordinator.view(), "late", OTHER))
            assert produced(await client.receive())[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(work())


def test_a_log_that_cannot_be_opened_is_answered_with_a_storage_error(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            await harness.coordinator.create_topic("late", 1, 1, TopicSettings())
            (tmp_path / "logs" / "late").write_text("in the way")
            harness.store.follow(harness.coordinator.view())
            with pytest.raises(LogDiskFailed):
                await harness.store.caught_up("late")
            client = await harness.connect()
            for _ in range(2):
                client.send(produce_request("late", batch(b"v")))
                assert produced(await client.receive())[0] == ErrorCode.KAFKA_STORAGE_ERROR
            client.send(fetch_request("late", 0))
            assert fetched(await client.receive())[0] == ErrorCode.KAFKA_STORAGE_ERROR

    run(work())
