"""Fetch over gRPC from a real log: what is stored as it came is answered, or refused, without harm to the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from brokers.log.config import LogConfig
from brokers.metrics import Metrics
from brokers.replication.store import Store
from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc import unpacking
from brokers.rpc.answers import ITEMS_MAX
from brokers.rpc.data import DataService
from brokers.rpc.unpacking import UNPACKED_BYTES_MAX, answer_bytes_max
from brokers.wire.batch import (
    BATCH_RECORDS_MAX,
    RECORD_HEADERS_MAX,
    BatchHeader,
    RecordToSend,
    check_produced,
    encode_batch,
    parse_header,
    unpacked,
)
from brokers.wire.compression import Codec, compress
from coordinators.api import FOR_EVER, Coordinator, Standing
from coordinators.model import Broker, ClusterView, Partition, Topic, TopicPartition
from tests.unit.brokers.replication.held import led
from tests.unit.brokers.wire.nonsense import empty_records, record, signed

MESSAGE_BYTES_MAX = 16 * 1024 * 1024
MIB = 1024 * 1024
PACKED = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
CONTEXT: Any = None
PARTITION = Partition(replicas=(1,), leader=1, epoch=0, in_sync=(1,))


class Here:
    """A coordinator for whom this broker leads everything."""

    me = Broker(1, "127.0.0.1", 1, 2)
    standing = FOR_EVER

    def leader(self, at: TopicPartition) -> Partition:
        return PARTITION

    def known_leader(self, at: TopicPartition) -> Partition:
        return PARTITION

    def serves(self) -> bool:
        return True

    def confirmed(self, at: TopicPartition, found: Partition, standing: Standing) -> Partition:
        return found


def view_of(life: str) -> ClusterView:
    return ClusterView(1, {1: Here.me}, {"t": Topic("t", (PARTITION,), life=life)})


class Stored:
    """One partition behind the service."""

    def __init__(self, folder: Path, message_bytes_max: int = MESSAGE_BYTES_MAX) -> None:
        self.store = Store(folder, LogConfig(), Here.me.id)
        asyncio.run(self.store.start(view_of("1")))
        self.metrics = Metrics()
        self.service = DataService(self.store, cast("Coordinator", Here()), self.metrics, message_bytes_max)
        self.message_bytes_max = message_bytes_max

    def put(self, *batches: bytearray) -> None:
        """Store batches as they come, as the Kafka listener does."""
        held = self.store.partition("t", 0)
        assert held is not None
        for batch in batches:
            held.append([(batch, check_produced(batch, self.message_bytes_max))], led(held))

    def put_unchecked(self, *batches: bytearray) -> None:
        held = self.store.partition("t", 0)
        assert held is not None
        held.append([(batch, parse_header(batch)) for batch in batches], led(held))

    def fetch(self, offset: int = 0, **bounds: int) -> pb.FetchResponse:
        answers: list[pb.FetchResponse] = []

        async def run() -> None:  # without a result, which asyncio in its debug mode would write out
            answers.append(await self.service.Fetch(pb.FetchRequest(topic="t", offset=offset, **bounds), CONTEXT))

        asyncio.run(run())
        return answers[0]


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Stored]:
    made = Stored(tmp_path)
    yield made
    asyncio.run(made.store.close())


def good(*values: bytes) -> bytearray:
    return encode_batch([RecordToSend(value) for value in values or (b"v",)])


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (signed(record(timestamp_delta=2**62), timestamp=2**63 - 1), "the timestamp"),
        (signed(record(offset_delta=2**63 - 1)), "an offset delta of"),
        (signed(b"\0" * 7), "a record of 0 bytes"),
    ],
)
def test_a_batch_of_nonsense_is_an_error_in_the_answer(stored: Stored, batch: bytearray, words: str) -> None:
    stored.put(batch, good())
    answer = stored.fetch()
    assert (answer.error.code, answer.error.definite) == (pb.INVALID_REQUEST, True)
    assert words in answer.error.message
    assert [one.value for one in stored.fetch(1).records] == [b"v"]


@pytest.mark.parametrize("batch", [signed(b"\0" * 7), signed(b"no frame", codec=Codec.ZSTD)])
def test_what_lies_before_nonsense_is_answered_and_the_nonsense_when_it_is_asked_for(
    stored: Stored, batch: bytearray
) -> None:
    stored.put(good(b"1"), good(b"2"), batch, good(b"4"))
    assert [one.value for one in stored.fetch().records] == [b"1", b"2"]
    assert "the next batch begins at offset 3" in stored.fetch(2).error.message
    assert [one.value for one in stored.fetch(3).records] == [b"4"]


# --- what an answer may unpack ----------------------------------------------------------------------------------


@pytest.fixture
def unpacked_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What each batch was unpacked to."""
    sizes: list[int] = []

    def counted(batch: memoryview, header: BatchHeader, bytes_max: int) -> bytes | memoryview:
        body = unpacked(batch, header, bytes_max)
        sizes.append(len(body))
        return body

    monkeypatch.setattr(unpacking, "unpacked", counted)
    return sizes


def bomb(size: int, codec: Codec = Codec.ZSTD) -> bytearray:
    return encode_batch([RecordToSend(bytes(size))], codec=codec)


def test_batches_that_unpack_to_much_are_answered_one_after_the_other(
    stored: Stored, unpacked_bytes: list[int]
) -> None:
    stored.put(*[bomb(UNPACKED_BYTES_MAX * 2 // 5) for _ in range(5)])
    lengths = [[one.offset for one in stored.fetch(offset).records] for offset in (0, 2, 4)]
    assert lengths == [[0, 1], [2, 3], [4]]
    assert sum(unpacked_bytes) < 5 * UNPACKED_BYTES_MAX * 2 // 5 + 1000


def test_what_a_reader_asks_for_bounds_what_is_unpacked_but_never_keeps_it_from_coming_on(stored: Stored) -> None:
    stored.put(*[bomb(1000) for _ in range(5)])
    assert [one.offset for one in stored.fetch(bytes_max=2500).records] == [0, 1]
    assert [one.offset for one in stored.fetch(2, bytes_max=1).records] == [2]


@pytest.mark.parametrize("codec", PACKED)
def test_a_batch_beyond_what_an_answer_carries_is_an_error_in_the_answer(
    stored: Stored, unpacked_bytes: list[int], codec: Codec
) -> None:
    stored.put(good(b"before"), bomb(UNPACKED_BYTES_MAX, codec), good(b"behind"))
    assert [one.value for one in stored.fetch().records] == [b"before"]
    answer = stored.fetch(1)
    assert (answer.error.code, answer.error.definite, list(answer.records)) == (pb.INVALID_REQUEST, True, [])
    assert "the batch at offset 1" in answer.error.message
    assert "the next batch begins at offset 2" in answer.error.message
    assert [one.value for one in stored.fetch(2).records] == [b"behind"]
    assert sum(unpacked_bytes) < 100, "of the large one nothing"


def test_the_largest_batch_that_may_be_stored_can_be_read(tmp_path: Path) -> None:
    stored = Stored(tmp_path, UNPACKED_BYTES_MAX + MIB)
    stored.put(good(bytes(UNPACKED_BYTES_MAX + MIB // 2)), good())
    answer = stored.fetch()
    assert [len(one.value) for one in answer.records] == [UNPACKED_BYTES_MAX + MIB // 2]
    assert UNPACKED_BYTES_MAX < answer.ByteSize() < answer_bytes_max(UNPACKED_BYTES_MAX + MIB)
    asyncio.run(stored.store.close())


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_batch_of_very_many_records_is_answered_in_parts(stored: Stored, codec: Codec) -> None:
    count = ITEMS_MAX + 1000
    stored.put(signed(bytes(compress(codec, bytearray(empty_records(count)))), count, codec=codec), good())
    offset = 0
    for part in (ITEMS_MAX, 1000):
        found = [one.offset for one in stored.fetch(offset).records]
        assert found == list(range(offset, offset + part))
        offset += part
    assert stored.metrics.fetch.messages == offset


def test_headers_count_as_much_as_records(stored: Stored) -> None:
    many = ITEMS_MAX * 2 // 5
    stored.put(signed(b"".join(record(offset_delta=n, headers=many) for n in range(5)), 5))
    assert [[one.offset for one in stored.fetch(offset).records] for offset in (0, 2, 4)] == [[0, 1], [2, 3], [4]]


def test_no_answer_is_larger_than_the_server_sends(stored: Stored) -> None:
    """The most that offsets, times, tags and lengths can add to what is unpacked."""
    times = 2**63 - 1
    stored.put(signed(empty_records(ITEMS_MAX), ITEMS_MAX, timestamp=times), signed(record(headers=RECORD_HEADERS_MAX)))
    largest = max(stored.fetch(offset).ByteSize() for offset in (0, ITEMS_MAX))
    assert largest < answer_bytes_max(MESSAGE_BYTES_MAX) - UNPACKED_BYTES_MAX


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (signed(b"packed", BATCH_RECORDS_MAX + 1, codec=Codec.ZSTD), "at most 1000000 can be fetched here"),
        (signed(record(headers=RECORD_HEADERS_MAX + 1)), "at most 100000 are taken apart"),
    ],
)
def test_a_batch_that_nobody_means_well_with_is_refused_and_can_be_passed_over(
    stored: Stored, batch: bytearray, words: str
) -> None:
    """An earlier version may have stored it."""
    header = parse_header(batch)
    stored.put_unchecked(batch, good(b"behind"))
    answer = stored.fetch()
    assert (answer.error.code, list(answer.records)) == (pb.INVALID_REQUEST, [])
    assert words in answer.error.message
    assert f"the next batch begins at offset {header.records_count}" in answer.error.message
    assert [one.value for one in stored.fetch(header.records_count).records] == [b"behind"]


def test_a_fetch_that_waited_for_its_turn_gets_nothing_of_a_topic_that_was_made_anew_meanwhile(tmp_path: Path) -> None:
    views = [view_of(life) for life in ("1", "2")]

    async def work() -> None:
        store = Store(tmp_path, LogConfig(), Here.me.id, lambda: views[0])
        await store.start(views[0])
        held = store.partition("t", 0)
        assert held is not None
        batch = bytearray(encode_batch([RecordToSend(b"of the former life")]))
        held.append([(batch, parse_header(batch))], led(held))
        service = DataService(store, cast("Coordinator", Here()), Metrics(), MESSAGE_BYTES_MAX)
        async with service._slices:
            fetch = asyncio.ensure_future(service.Fetch(pb.FetchRequest(topic="t"), CONTEXT))
            for _ in range(10):
                await asyncio.sleep(0)
            del views[0]
        answer = await fetch
        assert (answer.error.code, list(answer.records)) == (pb.UNKNOWN_TOPIC, [])
        await store.close()

    asyncio.run(work())
