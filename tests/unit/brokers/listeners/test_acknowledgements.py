"""An acknowledgement waits for its own partition, as long as the client wants, and while the leadership lasts."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from brokers.log.config import FsyncPolicy, LogConfig
from brokers.replication.replica import Replica
from brokers.wire.apis.table import ApiKey
from brokers.wire.errors import ErrorCode
from tests.integration.kafka.raw import (
    batch,
    fetch_request,
    fetched,
    framed,
    head,
    produce_request,
    produced,
)
from tests.unit.brokers.listeners.harness import Client, Harness, correlation, led_elsewhere, listening, run, until
from tests.unit.brokers.log.slow_files import SlowFiles

ALWAYS = LogConfig(fsync=FsyncPolicy.ALWAYS)
OTHER = 7
SLOW, FAST = 0, 1


def is_slow(call: str, handle: object) -> bool:
    """A sync of the partition 0 of `two`, or of `one`."""
    return call == "fdatasync" and Path(f"/proc/self/fd/{handle}").readlink().parent.name == str(SLOW)


@asynccontextmanager
async def slow_disk(folder: Path) -> AsyncIterator[tuple[Harness, Client]]:
    disk = SlowFiles(is_slow)
    async with listening(folder, log=ALWAYS, files=disk) as harness:
        try:
            yield harness, await harness.connect()
        finally:
            disk.let_go()


def replica(harness: Harness, topic: str, number: int) -> Replica:
    found = harness.store.partition(topic, number)
    assert found is not None
    return found


def both(records: bytes, timeout_ms: int) -> bytes:
    """A produce request, version 7, that carries a batch for each partition of `two`."""
    body = head(ApiKey.PRODUCE, 7, 1) + struct.pack(">hhii", -1, 1, timeout_ms, 1) + struct.pack(">h", 3) + b"two"
    parts = [struct.pack(">ii", number, len(records)) + records for number in (SLOW, FAST)]
    return framed(body + struct.pack(">i", 2) + b"".join(parts))


def test_a_partition_whose_disk_is_slow_holds_up_no_answer_that_stands_before_its_own(tmp_path: Path) -> None:
    async def work() -> None:
        async with slow_disk(tmp_path) as (harness, client):
            order = (FAST, FAST, SLOW, FAST)
            client.send(
                *(produce_request("two", batch(b"v"), partition=p, correlation_id=n) for n, p in enumerate(order))
            )
            first = await client.receive_all(2)
            assert [(correlation(answer), produced(answer)) for answer in first] == [(0, (0, 0)), (1, (0, 1))]
            await until(lambda: replica(harness, "two", FAST).log.syncing.synced_offset == 3)
            assert replica(harness, "two", SLOW).log.syncing.synced_offset == 0
            harness.store._files.let_go()  # type: ignore[attr-defined]
            rest = await client.receive_all(2)
            assert [(correlation(answer), produced(answer)) for answer in rest] == [(2, (0, 0)), (3, (0, 2))]

    run(work())


@pytest.mark.parametrize("number", [1, 8])
def test_an_acknowledgement_that_does_not_come_within_the_requests_timeout_is_said_to_be_late(
    tmp_path: Path, number: int
) -> None:
    """One request, and a row of them."""

    async def work() -> None:
        async with slow_disk(tmp_path) as (harness, client):
            client.send(produce_request("two", batch(b"v"), partition=FAST))
            assert produced(await client.receive()) == (0, 0)
            client.send(*(produce_request("one", batch(b"v"), timeout_ms=10) for _ in range(number)))
            answers = await client.receive_all(number)
            assert [produced(answer) for answer in answers] == [(ErrorCode.REQUEST_TIMED_OUT, -1)] * number
            assert replica(harness, "one", SLOW).log.end_offset == number, "it is kept, though nobody was told so"

    run(work())


def test_of_a_request_for_two_partitions_the_slow_one_alone_is_said_to_be_late(tmp_path: Path) -> None:
    async def work() -> None:
        async with slow_disk(tmp_path) as (_, client):
            client.send(both(batch(b"v"), timeout_ms=1000))
            answer = await client.receive()
            begin = 4 + 4 + 2 + 3 + 4  # behind correlation id, topics, name and count
            found = [struct.unpack_from(">ihqqq", answer, begin + n * struct.calcsize(">ihqqq"))[:3] for n in range(2)]
            assert found == [(SLOW, ErrorCode.REQUEST_TIMED_OUT, -1), (FAST, 0, 0)]

    run(work())


def test_what_nobody_waits_for_is_brought_to_the_disk_all_the_same(tmp_path: Path) -> None:
    async def work() -> None:
        async with slow_disk(tmp_path) as (harness, client):
            client.send(produce_request("two", batch(b"v"), partition=FAST, acks=0))
            await until(lambda: replica(harness, "two", FAST).log.syncing.synced_offset == 1)

    run(work())


def test_a_leadership_that_ends_ends_the_wait_for_its_acknowledgements(tmp_path: Path) -> None:
    async def work() -> None:
        async with slow_disk(tmp_path) as (harness, client):
            client.send(produce_request("one", batch(b"v")), produce_request("two", batch(b"v"), partition=FAST))
            await until(lambda: replica(harness, "one", SLOW).log.end_offset)
            harness.store.follow(led_elsewhere(harness.coordinator.view(), "one", OTHER))
            answers = await client.receive_all(2)
            assert [produced(answer) for answer in answers] == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1), (0, 0)]

    run(work())


def test_a_leadership_that_ends_ends_the_fetches_that_wait_in_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            client = await harness.connect()
            client.send(fetch_request("one", 0, wait_ms=10_000_000))
            await until(lambda: replica(harness, "one", 0).waiters)
            harness.coordinator._known_leader = led_elsewhere(  # type: ignore[method-assign]
                harness.coordinator.view(), "one", OTHER
            ).partition
            harness.store.follow(led_elsewhere(harness.coordinator.view(), "one", OTHER))
            assert fetched(await client.receive())[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(work())
