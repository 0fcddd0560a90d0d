"""Very many records or partitions, which fit into few bytes: what is done with them keeps nobody else waiting."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial

import pytest

from brokers.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from brokers.wire.apis.table import ApiKey
from brokers.wire.batch import BATCH_RECORDS_MAX
from brokers.wire.compression import Codec, compress
from brokers.wire.errors import NAMED_MAX, ErrorCode
from brokers.wire.schema import decode
from tests.integration.kafka.cluster import Cluster
from tests.integration.kafka.contract import make_topic
from tests.integration.kafka.raw import RawClient, batch, framed, head, request
from tests.unit.brokers.wire.nonsense import empty_records, record, signed

RECORDS = 100_000
VALUE_BYTES = 60_000_000
LATER_MS = 5000
# Requests of another client that are answered while one is under way, in a part of its slices. Where it is worked on in
# one go, they are those that came before.
SERVED_MIN = 10


def test_a_batch_of_more_records_than_can_be_taken_apart_in_time_is_refused(cluster: Cluster, topic: str) -> None:
    with RawClient(cluster.port()) as client:
        make_topic(client, topic)
        for count, error in ((BATCH_RECORDS_MAX, ErrorCode.NONE), (BATCH_RECORDS_MAX + 1, ErrorCode.MESSAGE_TOO_LARGE)):
            packed = signed(b"nobody looks inside", count, codec=Codec.GZIP)
            assert client.produce(topic, bytes(packed))[0] == error


def of_two_times(codec: Codec, first: bytes, count: int) -> bytes:
    """A batch of which only the last record is of a later time."""
    body = first + record(timestamp_delta=LATER_MS, offset_delta=count - 1)
    packed = body if codec is Codec.NONE else bytes(compress(codec, bytearray(body)))
    return bytes(signed(packed, count, codec=codec, timestamp=1000, timestamp_max=1000 + LATER_MS))


def many_records() -> bytes:
    """To be taken apart by the event loop."""
    return of_two_times(Codec.NONE, empty_records(RECORDS - 1), RECORDS)


def many_bytes(codec: Codec) -> bytes:
    """To be unpacked by a thread."""
    return of_two_times(codec, record(value=bytes(VALUE_BYTES)), 2)


@pytest.mark.parametrize(
    ("made", "last"),
    [(many_records, RECORDS - 1), (partial(many_bytes, Codec.GZIP), 1), (partial(many_bytes, Codec.ZSTD), 1)],
    ids=["records", "bytes by gzip", "bytes by zstd"],
)
def test_a_time_is_looked_up_in_a_batch_of_many_records_or_bytes_while_others_are_served(
    made: Callable[[], bytes], last: int, cluster: Cluster, topic: str
) -> None:
    part = ListOffsetsPartition(partition_index=0, timestamp=1001)
    question = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(part,)),))
    with RawClient(cluster.port()) as asker, RawClient(cluster.port()) as other:
        for name in (topic, f"{topic}-other"):
            make_topic(other, name)
        assert other.produce(topic, made()) == (0, 0)
        asker.send(request(ApiKey.LIST_OFFSETS, 5, question))
        served = 0
        while not asker.hears(0):
            assert other.produce(f"{topic}-other", batch(b"v"))[0] == 0
            served += 1
        answer = decode(ListOffsetsResponse, 5, asker.receive()[4:], flexible=False)
    found = answer.topics[0].partitions[0]
    assert (found.error_code, found.offset, found.timestamp) == (0, last, 1000 + LATER_MS)
    assert served >= SERVED_MIN


def test_a_fetch_of_as_many_partitions_as_may_be_is_answered(cluster: Cluster, topic: str) -> None:
    """In one turn of the loop, which the watchdog of tests' brokers holds to its bound."""
    count = NAMED_MAX
    body = head(ApiKey.FETCH, 4) + struct.pack(">iiiibih", -1, 0, 1, 1 << 20, 0, 1, len(topic)) + topic.encode()
    body += struct.pack(">i", count) + b"".join(struct.pack(">iqi", number, 0, 1000) for number in range(count))
    with RawClient(cluster.port()) as client:
        make_topic(client, topic)
        client.send(framed(body))
        answer = client.receive()
    assert len(answer) > count * struct.calcsize(">ihqqii")


def test_a_list_of_more_partitions_than_may_be_is_refused_partition_by_partition(cluster: Cluster, topic: str) -> None:
    parts = tuple(ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(NAMED_MAX))
    topics = tuple(ListOffsetsTopic(name=name, partitions=parts) for name in (topic, f"{topic}-other"))
    with RawClient(cluster.port()) as client:
        answer = client.call(ApiKey.LIST_OFFSETS, 5, ListOffsetsRequest(replica_id=-1, topics=topics))
    codes = {part.error_code for of_topic in answer.topics for part in of_topic.partitions}
    assert codes == {ErrorCode.INVALID_REQUEST}
