"""What a connection promises when not everything can be answered at once."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from brokers.listeners.config import ListenerLimits
from brokers.listeners.requests.fetch import Reading
from brokers.log.config import FsyncPolicy, LogConfig
from brokers.log.errors import LogSyncFailed, SequenceError
from brokers.log.flush import GroupCommit
from brokers.log.log import Batch, Log
from brokers.wire.apis.fetch import FetchRequest, Part
from brokers.wire.apis.list_offsets import (
    EARLIEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from brokers.wire.apis.metadata import MetadataRequest, MetadataTopicName
from brokers.wire.apis.table import ApiKey
from brokers.wire.apis.topics import DeleteTopicsRequest
from brokers.wire.batch import Record, decode_records, parse_header
from brokers.wire.errors import ErrorCode
from brokers.wire.rows import Row
from brokers.wire.schema import decode
from tests.integration.kafka.raw import batch, fetch_request, fetched, produce_request, produced, request
from tests.unit.brokers.listeners.harness import HeldBack, correlation, listening, run, turn, until
from tests.unit.brokers.replication.held import led

ALWAYS = LogConfig(fsync=FsyncPolicy.ALWAYS)


def metadata(correlation_id: int, topic: str = "one") -> bytes:
    message = MetadataRequest(topics=(MetadataTopicName(name=topic),))
    return request(ApiKey.METADATA, 5, message, correlation_id)


def test_the_requests_of_a_read_ask_once_for_each_partition_and_are_answered_in_order(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HeldBack) as harness:
            coordinator = harness.coordinator
            assert isinstance(coordinator, HeldBack)
            client = await harness.connect()
            client.send(*(produce_request("two", batch(b"v"), partition=n % 2, correlation_id=n) for n in range(6)))
            await until(lambda: len(coordinator.asked) == 2)
            for number in (1, 0):
                assert harness.metrics.produce.requests == 0
                coordinator.release(number)
            answers = [await client.receive() for _ in range(6)]
            assert [correlation(answer) for answer in answers] == list(range(6))
            assert [produced(answer) for answer in answers] == [(0, n // 2) for n in range(6)]
            assert len(coordinator.asked) == 2
            assert coordinator.meter.calls()["lookup"] == 6, "each of them has waited"

    run(work())


def test_requests_whose_look_up_is_done_do_not_wait_for_those_of_later_reads(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HeldBack) as harness:
            coordinator = harness.coordinator
            assert isinstance(coordinator, HeldBack)
            client = await harness.connect()
            client.send(produce_request("two", batch(b"a")))
            await until(lambda: len(coordinator.asked) == 1)
            client.send(fetch_request("two", 0), produce_request("two", batch(b"b"), partition=1))
            await until(lambda: len(coordinator.asked) == 2)
            coordinator.release(0)
            assert produced(await client.receive()) == (0, 0)
            await until(lambda: len(coordinator.asked) == 3)
            coordinator.release(1)
            coordinator.release(2)
            assert b"a" in fetched(await client.receive())[2]
            assert produced(await client.receive()) == (0, 0)

    run(work())


def test_after_a_look_up_what_is_known_by_then_is_not_looked_up_again(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HeldBack) as harness:
            coordinator = harness.coordinator
            assert isinstance(coordinator, HeldBack)
            client = await harness.connect()
            client.send(produce_request("one", batch(b"a")))
            await until(lambda: len(coordinator.asked) == 1)
            coordinator.release(0)
            assert produced(await client.receive()) == (0, 0)
            coordinator.knows = True
            client.send(produce_request("one", batch(b"b")), fetch_request("one", 1))
            assert produced(await client.receive()) == (0, 1)
            assert b"b" in fetched(await client.receive())[2]
            assert len(coordinator.asked) == 1

    run(work())


def test_a_partition_that_a_request_names_twice_is_looked_up_once_and_read_once(tmp_path: Path) -> None:
    """Else one small request could keep all others waiting."""

    async def work() -> None:
        async with listening(tmp_path, kind=HeldBack) as harness:
            coordinator = harness.coordinator
            assert isinstance(coordinator, HeldBack)
            client = await harness.connect()
            part = ListOffsetsPartition(partition_index=1, timestamp=EARLIEST)
            other = ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
            topics = (ListOffsetsTopic(name="two", partitions=(part, other, part)),)
            message = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)
            client.send(request(ApiKey.LIST_OFFSETS, 5, message))
            await until(lambda: len(coordinator.asked) == 2)
            for number in range(2):
                coordinator.release(number)
            rows = decode(ListOffsetsResponse, 5, (await client.receive())[4:], flexible=False).topics[0].partitions
            assert [row.error_code for row in rows] == [ErrorCode.INVALID_REQUEST, 0, ErrorCode.INVALID_REQUEST]

    run(work())


def test_a_fetch_that_names_a_partition_twice_reads_it_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            held = harness.store.partition("one", 0)
            assert held is not None
            stored = memoryview(bytearray(batch(b"v")))
            held.append([(stored, parse_header(stored))], led(held))
            part = Part("one", 0, -1, 0, 1 << 20)
            wanted = FetchRequest(4, 1, -1, 0, 1, 1 << 20, 0, 0, -1, [part, part])
            leader = led(held)
            reading = Reading(harness.listener._service, wanted, [leader, leader])
            assert reading.read()
            assert [(found.error, len(found.records) > 0) for found in reading.found] == [
                (ErrorCode.NONE, True),
                (ErrorCode.INVALID_REQUEST, False),
            ]

    run(work())


def test_a_failed_look_up_is_answered_and_the_next_request_goes_on(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HeldBack) as harness:
            coordinator = harness.coordinator
            assert isinstance(coordinator, HeldBack)
            client = await harness.connect()
            client.send(produce_request("none", batch(b"a")), produce_request("one", batch(b"b")))
            await until(lambda: len(coordinator.asked) == 2)
            coordinator.release(0)
            coordinator.release(1)
            assert produced(await client.receive()) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
            assert produced(await client.receive()) == (0, 0)

    run(work())


def test_other_requests_keep_their_place_between_look_ups(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HeldBack) as harness:
            coordinator = harness.coordinator
            assert isinstance(coordinator, HeldBack)
            client = await harness.connect()
            client.send(produce_request("one", batch(b"a"), correlation_id=1), metadata(2), metadata(3, "made"))
            client.send(produce_request("two", batch(b"b"), correlation_id=4))
            await until(lambda: len(coordinator.asked) == 2)
            coordinator.release(1)
            coordinator.release(0)
            assert [correlation(await client.receive()) for _ in range(4)] == [1, 2, 3, 4]

    run(work())


def test_what_a_client_sent_before_it_left_is_carried_out(tmp_path: Path) -> None:
    """As in Kafka: it may only have stopped sending."""

    async def work() -> None:
        async with listening(tmp_path, kind=HeldBack) as harness:
            coordinator = harness.coordinator
            assert isinstance(coordinator, HeldBack)
            client = await harness.connect()
            client.send(produce_request("one", batch(b"a")))
            await until(lambda: len(coordinator.asked) == 1)
            client.writer.close()
            coordinator.release(0)
            await until(lambda: harness.listener.counts.connections == 0)
            held = harness.store.partition("one", 0)
            assert held is not None
            assert held.log.end_offset == 1

    run(work())


def test_appends_are_acknowledged_after_the_sync_in_order_and_later_requests_go_on(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, log=ALWAYS) as harness:
            client = await harness.connect()
            client.send(*(produce_request("one", batch(b"v"), correlation_id=n) for n in range(3)), metadata(3))
            assert [correlation(await client.receive()) for _ in range(4)] == [0, 1, 2, 3]
            held = harness.store.partition("one", 0)
            assert held is not None
            assert held.log.syncing.synced_offset == 3

    run(work())


def test_a_failed_sync_ends_the_connection_without_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with listening(tmp_path, log=ALWAYS) as harness:
            held = harness.store.partition("one", 0)
            assert held is not None

            async def fails(commit: GroupCommit, offset: int) -> None:
                raise LogSyncFailed("the disk is gone")

            monkeypatch.setattr(GroupCommit, "synced", fails)
            client = await harness.connect()
            client.send(produce_request("one", batch(b"v")))
            assert await client.ended()

    run(work())


def test_a_sync_that_meets_what_nobody_thought_of_ends_the_connection_and_acknowledges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["message"]))
        async with listening(tmp_path, log=ALWAYS) as harness:

            async def fails(commit: GroupCommit, offset: int) -> None:
                raise ZeroDivisionError

            monkeypatch.setattr(GroupCommit, "synced", fails)
            client = await harness.connect()
            client.send(produce_request("one", batch(b"v")))
            assert await client.ended()
        assert reported == ["what an answer waited for failed"]

    run(work())


def test_one_read_is_one_append_for_each_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            calls: list[int] = []
            append = Log.append

            def counted(log: Log, batches: Sequence[Batch], epoch: int) -> list[int | SequenceError]:
                calls.append(len(batches))
                return append(log, batches, epoch)

            monkeypatch.setattr(Log, "append", counted)
            client = await harness.connect()
            frames = [produce_request("two", batch(b"v"), partition=n % 2, correlation_id=n) for n in range(10)]
            client.send(*frames)
            answers = [await client.receive() for _ in range(10)]
            assert [correlation(answer) for answer in answers] == list(range(10))
            assert [produced(answer) for answer in answers] == [(0, n // 2) for n in range(10)]
            assert sum(calls) == 10
            assert len(calls) == 2

    run(work())


def rows_counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many batches were appended together, each time."""
    calls: list[int] = []
    append_row = Log.append_row

    def counted(log: Log, row: Row, epoch: int) -> range:
        calls.append(len(row.timestamps))
        return append_row(log, row, epoch)

    monkeypatch.setattr(Log, "append_row", counted)
    return calls


def small(number: int, **how: int) -> bytes:
    return produce_request("one", batch(b"%08d" % number), correlation_id=number, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [3, 5, 7])
def test_requests_of_one_size_are_carried_out_together_and_answered_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    async def work() -> None:
        rows = rows_counted(monkeypatch)
        async with listening(tmp_path) as harness:
            client = await harness.connect()
            client.send(small(0, version=version))
            assert correlation(await client.receive()) == 0
            client.send(*(small(number, version=version) for number in range(1, 41)), metadata(41), small(42))
            answers = await client.receive_all(42)
            assert [correlation(answer) for answer in answers] == list(range(1, 43))
            places = [produced(answer) for answer in (*answers[:40], answers[41])] if version >= 5 else []
            assert places == [(0, number) for number in range(1, 42)][: len(places)]
            assert sum(rows) >= 36, rows  # a read may have brought a few alone
            counts = harness.metrics.produce
            assert (counts.requests, counts.messages) == (42, 42)
            held = harness.store.partition("one", 0)
            assert held is not None
            assert [record.value for record in decode_all(held.read(0, 1 << 20))] == [
                *(b"%08d" % number for number in range(41)),
                b"%08d" % 42,
            ]

    run(work())


def decode_all(data: bytes) -> list[Record]:
    found: list[Record] = []
    while data:
        size = parse_header(data).size
        found += decode_records(data[:size])
        data = data[size:]
    return found


def test_one_bad_request_among_those_of_one_size_is_refused_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        rows = rows_counted(monkeypatch)
        async with listening(tmp_path) as harness:
            client = await harness.connect()
            client.send(small(0))
            await client.receive()
            frames = [small(number) for number in range(1, 21)]
            frames[12] = frames[12][:-1] + b"!"
            client.send(*frames)
            answers = [produced(answer) for answer in await client.receive_all(20)]
            good = iter(range(1, 20))
            expected = [(0, next(good)) if n != 12 else (int(ErrorCode.CORRUPT_MESSAGE), -1) for n in range(20)]
            assert answers == expected
            assert sum(rows) < 20

    run(work())


def test_requests_of_one_size_to_a_log_that_refuses_writes_are_all_refused(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            client = await harness.connect()
            client.send(small(0))
            await client.receive()
            held = harness.store.partition("one", 0)
            assert held is not None
            held.log.writing.refusal = "the disk is full"
            client.send(*(small(number) for number in range(1, 21)))
            answers = await client.receive_all(20)
            assert [correlation(answer) for answer in answers] == list(range(1, 21))
            assert {produced(answer) for answer in answers} == {(int(ErrorCode.KAFKA_STORAGE_ERROR), -1)}
            assert harness.metrics.produce.messages == 1

    run(work())


def test_requests_of_one_size_are_acknowledged_after_the_sync(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, log=ALWAYS) as harness:
            client = await harness.connect()
            client.send(*(small(number) for number in range(40)))
            answers = await client.receive_all(40)
            assert [produced(answer) for answer in answers] == [(0, number) for number in range(40)]
            held = harness.store.partition("one", 0)
            assert held is not None
            assert held.log.syncing.synced_offset == 40

    run(work())


def test_connections_are_bounded_and_the_next_is_closed(tmp_path: Path) -> None:
    async def work() -> None:
        limits = ListenerLimits(connections_max=2)
        async with listening(tmp_path, limits=limits) as harness:
            clients = [await harness.connect() for _ in range(3)]
            assert await clients[2].ended()
            clients[0].send(metadata(1))
            assert correlation(await clients[0].receive()) == 1
            clients[1].writer.close()
            await until(lambda: harness.listener.counts.connections == 1)
            again = await harness.connect()
            again.send(metadata(2))
            assert correlation(await again.receive()) == 2
            assert harness.listener.counts.connections_refused == 1

    run(work())


def test_connections_of_one_address_are_bounded(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, limits=ListenerLimits(connections_per_address_max=1)) as harness:
            first, second = await harness.connect(), await harness.connect()
            assert await second.ended()
            first.send(metadata(1))
            assert correlation(await first.receive()) == 1

    run(work())


def test_an_idle_connection_is_closed_and_one_that_waits_for_an_answer_is_not(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, limits=ListenerLimits(idle_ms_max=20)) as harness:
            idle, waits = await harness.connect(), await harness.connect()
            waits.send(fetch_request("one", 0, wait_ms=200))
            idle.send(b"\0\0")
            assert await idle.ended()
            assert harness.listener.counts.connections_idle_closed == 1
            assert fetched(await waits.receive()) == (0, 0, b"")

    run(work())


def test_a_client_that_reads_nothing_for_long_is_closed_though_it_is_owed_an_answer(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, limits=ListenerLimits(idle_ms_max=20)) as harness:
            held = harness.store.partition("one", 0)
            assert held is not None
            large = bytearray(batch(bytes(8 << 20)))
            for _ in range(4):
                held.append([(large, parse_header(large))], led(held))
            client = await harness.connect()
            client.send(fetch_request("one", 0, bytes_max=1 << 26), metadata(2))
            await until(lambda: harness.listener.counts.connections == 1)
            await until(lambda: not harness.listener.counts.connections)
            assert harness.listener.counts.connections_idle_closed >= 1

    run(work())


def test_a_connection_with_too_many_requests_in_flight_is_read_no_further(tmp_path: Path) -> None:
    async def work() -> None:
        limits = ListenerLimits(requests_in_flight_max=10)
        async with listening(tmp_path, limits=limits, kind=HeldBack) as harness:
            coordinator = harness.coordinator
            assert isinstance(coordinator, HeldBack)
            client = await harness.connect()
            sent = 20_000
            client.send(*(produce_request("one", batch(b"v"), correlation_id=n) for n in range(sent)))
            await until(lambda: coordinator.requests > 10)
            asked = coordinator.requests
            for _ in range(100):
                await turn()
            assert coordinator.requests == asked < sent
            answers = asyncio.create_task(client.receive_all(sent))
            released = 0
            while not answers.done():
                for number in range(released, len(coordinator.asked)):
                    coordinator.release(number)
                released = len(coordinator.asked)
                await turn()
            assert [correlation(answer) for answer in answers.result()] == list(range(sent))

    run(work())


def test_a_deleted_topic_ends_a_waiting_fetch(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            client, other = await harness.connect(), await harness.connect()
            client.send(fetch_request("one", 0, wait_ms=60_000))
            held = harness.store.partition("one", 0)
            assert held is not None
            await until(lambda: held.waiters)
            other.send(request(ApiKey.DELETE_TOPICS, 3, DeleteTopicsRequest(topic_names=("one",), timeout_ms=1000)))
            await other.receive()
            assert fetched(await client.receive())[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            other.send(produce_request("one", batch(b"v")))
            assert produced(await other.receive())[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(work())


def test_requests_and_refusals_are_counted(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            client = await harness.connect()
            client.send(produce_request("one", batch(b"a", b"b", b"c")), produce_request("one", b"bad"), metadata(1))
            for _ in range(3):
                await client.receive()
            client.send(fetch_request("one", 1), fetch_request("one", 3))
            for _ in range(2):
                await client.receive()
            client.send(struct.pack(">i", -1))
            assert await client.ended()
            assert (harness.metrics.fetch.requests, harness.metrics.fetch.messages) == (1, 2)
            assert (harness.metrics.produce.requests, harness.metrics.produce.messages) == (2, 3)
            assert harness.metrics.refused == {"CORRUPT_MESSAGE": 1, "FRAME_SIZE": 1}
            assert harness.listener.counts.requests == {"METADATA": 1, "FETCH": 2}

    run(work())
