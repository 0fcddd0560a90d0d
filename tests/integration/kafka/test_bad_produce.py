"""Produce requests that are refused: with their number, batch by batch, and the log as it was."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from crc32c import crc32c

from brokers.wire.batch import CRC_AT, CRC_BEGIN, HEADER
from brokers.wire.errors import ErrorCode
from tests.integration.kafka.cluster import Cluster
from tests.integration.kafka.contract import make_topic, unharmed
from tests.integration.kafka.raw import RawClient, batch, framed, head, produce_request, produced

FIELDS = (
    "base_offset", "length", "leader_epoch", "magic", "crc", "attributes", "last_offset_delta", "base_timestamp",
    "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "count",
)  # fmt: skip
TRANSACTIONAL, CONTROL = 0x10, 0x20


def altered(good: bytes, *, sign: bool = True, **changes: int) -> bytes:
    """`good` with header fields changed, and signed anew."""
    fields = dict(zip(FIELDS, HEADER.unpack_from(good), strict=True)) | changes
    data = bytearray(HEADER.pack(*fields.values()) + good[HEADER.size :])
    if sign:
        struct.pack_into(">I", data, CRC_AT, crc32c(bytes(data[CRC_BEGIN:])))
    return bytes(data)


GOOD = batch(b"first", b"second")
REFUSED: dict[str, tuple[bytes | None, ErrorCode]] = {
    "null records": (None, ErrorCode.CORRUPT_MESSAGE),
    "no batch": (b"", ErrorCode.CORRUPT_MESSAGE),
    "two batches": (GOOD + GOOD, ErrorCode.CORRUPT_MESSAGE),
    "half a header": (GOOD[:30], ErrorCode.CORRUPT_MESSAGE),
    "a batch cut short": (GOOD[:-1], ErrorCode.CORRUPT_MESSAGE),
    "a batch and a byte": (GOOD + b"\0", ErrorCode.CORRUPT_MESSAGE),
    "magic 0": (altered(GOOD, magic=0), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    "magic 1": (altered(GOOD, magic=1), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    "magic 3": (altered(GOOD, magic=3), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    "a bad CRC": (altered(GOOD, sign=False, crc=1), ErrorCode.CORRUPT_MESSAGE),
    "a flipped bit": (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), ErrorCode.CORRUPT_MESSAGE),
    "a count that does not match": (altered(GOOD, count=3), ErrorCode.INVALID_RECORD),
    "a count of 0": (altered(GOOD, count=0, last_offset_delta=-1), ErrorCode.INVALID_RECORD),
    "a negative count": (altered(GOOD, count=-1, last_offset_delta=-2), ErrorCode.INVALID_RECORD),
    "a last offset delta that does not match": (altered(GOOD, last_offset_delta=5), ErrorCode.INVALID_RECORD),
    "more records than bytes": (altered(GOOD, count=1000, last_offset_delta=999), ErrorCode.INVALID_RECORD),
    "codec 5": (altered(GOOD, attributes=5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "codec 7": (altered(GOOD, attributes=7), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "a control batch": (altered(GOOD, attributes=CONTROL), ErrorCode.INVALID_RECORD),
    "a transactional batch": (altered(GOOD, attributes=TRANSACTIONAL), ErrorCode.INVALID_TXN_STATE),
    "a producer without an epoch": (altered(GOOD, producer_id=5), ErrorCode.INVALID_RECORD),
    "a record that is too large": (batch(b"x" * 1_000_000), ErrorCode.MESSAGE_TOO_LARGE),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_batch_is_refused_with_its_number(name: str, cluster: Cluster, topic: str) -> None:
    records, code = REFUSED[name]
    with unharmed(cluster, topic), RawClient(cluster.port()) as client:
        assert client.produce(topic, records) == (code, -1)
        assert client.produce(topic, records) == (code, -1)


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_unknown_acks_are_refused(acks: int, cluster: Cluster, topic: str) -> None:
    with unharmed(cluster, topic), RawClient(cluster.port()) as client:
        assert client.produce(topic, GOOD, acks=acks) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)


def test_a_transaction_is_refused(cluster: Cluster, topic: str) -> None:
    with unharmed(cluster, topic), RawClient(cluster.port()) as client:
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert client.produce(topic, GOOD, transactional_id=b"mine") == (code, -1)


@pytest.mark.parametrize("how", [{"timeout_ms": -1}, {"timeout_ms": 2**31 - 1}, {"acks": -1}, {"version": 5}])
def test_odd_but_legal_requests_are_stored(how: dict[str, Any], cluster: Cluster, topic: str) -> None:
    with RawClient(cluster.port()) as client:
        make_topic(client, topic)
        assert client.produce(topic, GOOD, **how) == (0, 0)
        assert client.produce(topic, GOOD, **how) == (0, 2)


@pytest.mark.parametrize(
    "records",
    [
        batch(b"x"),
        batch(b""),
        batch(b"x" * 900_000),
        altered(GOOD, base_timestamp=2**63 - 1, max_timestamp=2**63 - 1),
        altered(GOOD, base_timestamp=-(2**63), max_timestamp=-(2**63)),
        altered(GOOD, base_offset=2**62),
    ],
    ids=["one byte", "no byte", "largest", "latest time", "earliest time", "an offset of its own"],
)
def test_extreme_but_legal_batches_are_stored_and_served(records: bytes, cluster: Cluster, topic: str) -> None:
    with RawClient(cluster.port()) as client:
        make_topic(client, topic)
        assert client.produce(topic, records) == (0, 0)
        error, _, found = client.fetch(topic, 0)
        assert (error, found[:8], found[CRC_AT:]) == (0, bytes(8), records[CRC_AT:])


BAD_NAMES = ["", ".", "..", "../x", "a/b", "a\0b", "x" * 250, "t\N{CYRILLIC SMALL LETTER O}pic", "a b"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_bad_name_is_no_topic(name: str, cluster: Cluster, topic: str) -> None:
    with unharmed(cluster, topic), RawClient(cluster.port()) as client:
        assert client.produce(name, GOOD) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


@pytest.mark.parametrize("partition", [-1, 1, 2**31 - 1, -(2**31)])
def test_an_unknown_partition_is_refused(partition: int, cluster: Cluster, topic: str) -> None:
    with unharmed(cluster, topic), RawClient(cluster.port()) as client:
        assert client.produce(topic, GOOD, partition=partition) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_a_bad_batch_does_not_keep_its_neighbours_out(cluster: Cluster, topic: str) -> None:
    bad = altered(GOOD, sign=False, crc=1)
    with RawClient(cluster.port()) as client:
        make_topic(client, topic)
        client.send(b"".join(produce_request(topic, records) for records in (GOOD, bad, GOOD, bad, GOOD)))
        answers = [produced(client.receive()) for _ in range(5)]
    assert answers == [(0, 0), (ErrorCode.CORRUPT_MESSAGE, -1), (0, 2), (ErrorCode.CORRUPT_MESSAGE, -1), (0, 4)]


def test_a_partition_named_twice_gets_both_batches_in_order(cluster: Cluster, topic: str) -> None:
    name = topic.encode()
    parts = b"".join(struct.pack(">ii", 0, len(GOOD)) + GOOD for _ in range(2))
    body = struct.pack(">hhiih", -1, 1, 1000, 1, len(name)) + name + struct.pack(">i", 2) + parts
    with RawClient(cluster.port()) as client:
        make_topic(client, topic)
        client.send(framed(head(0, 7) + body))
        client.receive()
        assert client.end_offset(topic) == 4


def test_without_acks_only_the_end_of_the_connection_tells_of_an_error(cluster: Cluster, topic: str) -> None:
    with unharmed(cluster, topic), RawClient(cluster.port()) as client:
        client.send(produce_request(topic, altered(GOOD, sign=False, crc=1), acks=0))
        assert client.closed_by_broker()


def test_without_acks_nothing_is_answered_and_everything_stored(cluster: Cluster, topic: str) -> None:
    with RawClient(cluster.port()) as client:
        make_topic(client, topic)
        client.send(produce_request(topic, GOOD, acks=0) * 3)
        assert client.end_offset(topic) == 6


def sequenced(sequence: int, epoch: int = 0, producer_id: int = 77) -> bytes:
    return batch(b"v", producer=(producer_id, epoch, sequence))


def test_an_idempotent_producer_is_held_to_its_sequence(cluster: Cluster, topic: str) -> None:
    with RawClient(cluster.port()) as client:
        make_topic(client, topic)
        assert client.produce(topic, sequenced(0)) == (0, 0)
        assert client.produce(topic, sequenced(1)) == (0, 1)
        assert client.produce(topic, sequenced(1)) == (0, 1)
        assert client.produce(topic, sequenced(5)) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert client.produce(topic, sequenced(0, epoch=1)) == (0, 2)
        assert client.produce(topic, sequenced(2, epoch=0)) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
        assert client.end_offset(topic) == 3


def test_a_sequence_wraps(cluster: Cluster, topic: str) -> None:
    with RawClient(cluster.port()) as client:
        make_topic(client, topic)
        assert client.produce(topic, sequenced(2**31 - 1)) == (0, 0)
        assert client.produce(topic, sequenced(0)) == (0, 1)


def test_a_decompression_bomb_is_stored_unopened(cluster: Cluster, topic: str) -> None:
    """The broker never unpacks what a producer sent, so a bomb is bytes like any other; its reader must beware."""
    import zlib

    bomb = zlib.compressobj(9, wbits=31)
    packed = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(64)) + bomb.flush()
    records = altered(GOOD[: HEADER.size] + packed, attributes=1, length=HEADER.size - 12 + len(packed))
    with RawClient(cluster.port()) as client:
        make_topic(client, topic)
        with unharmed(cluster, f"{topic}-other"):
            assert client.produce(topic, records) == (0, 0)
