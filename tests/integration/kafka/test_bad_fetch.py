"""Fetches at the edges: offsets, sizes, waits, sessions, epochs."""

from __future__ import annotations

import struct
from time import monotonic

import pytest

from brokers.wire.apis.list_offsets import EARLIEST, LATEST, ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from brokers.wire.apis.table import ApiKey
from brokers.wire.errors import ErrorCode
from tests.integration.kafka.cluster import Cluster
from tests.integration.kafka.contract import make_topic
from tests.integration.kafka.raw import RawClient, batch, fetch_request, fetched, produce_request, produced

VALUES = (b"one", b"two", b"three")
INT64_MAX = 2**63 - 1


@pytest.fixture
def client(cluster: Cluster, topic: str) -> RawClient:
    """A client of a topic with three batches of one record."""
    client = RawClient(cluster.port())
    make_topic(client, topic)
    for number, value in enumerate(VALUES):
        assert client.produce(topic, batch(value)) == (0, number)
    return client


@pytest.mark.parametrize("offset", [-1, -(2**63), 4, INT64_MAX])
def test_an_offset_outside_the_log_is_refused(client: RawClient, topic: str, offset: int) -> None:
    with client:
        assert client.fetch(topic, offset, wait_ms=60_000) == (ErrorCode.OFFSET_OUT_OF_RANGE, 3, b"")


@pytest.mark.parametrize("offset", [0, 1, 2])
def test_reading_begins_at_the_batch_of_the_offset(client: RawClient, topic: str, offset: int) -> None:
    with client:
        error, high, records = client.fetch(topic, offset)
    assert (error, high, struct.unpack_from(">q", records)[0]) == (0, 3, offset)
    assert all(value in records for value in VALUES[offset:])


@pytest.mark.parametrize("bytes_max", [0, 1, -1, -(2**31)])
def test_one_batch_comes_however_little_is_asked_for(client: RawClient, topic: str, bytes_max: int) -> None:
    with client:
        error, _, records = client.fetch(topic, 0, bytes_max=bytes_max)
    assert error == 0
    assert VALUES[0] in records
    assert VALUES[1] not in records


def test_everything_comes_if_2_to_the_31_bytes_are_asked_for(client: RawClient, topic: str) -> None:
    with client:
        records = client.fetch(topic, 0, bytes_max=2**31 - 1)[2]
    assert all(value in records for value in VALUES)


@pytest.mark.parametrize("wait_ms", [0, -1, -(2**31), 1])
def test_the_end_of_the_log_is_answered_when_patience_ends(client: RawClient, topic: str, wait_ms: int) -> None:
    with client:
        assert client.fetch(topic, 3, wait_ms=wait_ms) == (0, 3, b"")


def test_too_few_bytes_are_answered_when_patience_ends(client: RawClient, topic: str) -> None:
    with client:
        error, _, records = client.fetch(topic, 0, wait_ms=50, bytes_min=2**31 - 1)
    assert error == 0
    assert all(value in records for value in VALUES)


def test_a_waiting_fetch_is_answered_by_an_append(client: RawClient, cluster: Cluster, topic: str) -> None:
    with client, RawClient(cluster.port()) as producer:
        client.send(fetch_request(topic, 3, wait_ms=2**31 - 1))
        assert producer.produce(topic, batch(b"four")) == (0, 3)
        assert b"four" in fetched(client.receive())[2]


def test_a_waiting_fetch_waits_for_as_many_bytes_as_it_wants(client: RawClient, cluster: Cluster, topic: str) -> None:
    with client, RawClient(cluster.port()) as producer:
        client.send(fetch_request(topic, 3, wait_ms=60_000, bytes_min=150))
        for number in range(3, 6):
            assert producer.produce(topic, batch(b"more")) == (0, number)
        assert len(fetched(client.receive())[2]) >= 150


def test_what_follows_a_waiting_fetch_waits_for_it(client: RawClient, cluster: Cluster, topic: str) -> None:
    """Answers come in the order of the requests, whatever each of them waits for."""
    with client, RawClient(cluster.port()) as producer:
        pipelined = fetch_request(topic, 3, wait_ms=60_000, correlation_id=1)
        pipelined += produce_request(topic, batch(b"five"), correlation_id=2)
        pipelined += fetch_request(topic, 4, correlation_id=3)
        client.send(pipelined)
        assert producer.produce(topic, batch(b"four")) == (0, 3)
        answers = [client.receive() for _ in range(3)]
    assert [struct.unpack_from(">i", answer)[0] for answer in answers] == [1, 2, 3]
    assert produced(answers[1]) == (0, 4)
    assert b"five" in fetched(answers[2])[2]


def test_a_client_that_left_while_it_waited_is_forgotten(client: RawClient, cluster: Cluster, topic: str) -> None:
    with RawClient(cluster.port()) as producer:
        with client:
            client.send(fetch_request(topic, 3, wait_ms=60_000))
        assert producer.produce(topic, batch(b"four")) == (0, 3)
    assert cluster.alive()


@pytest.mark.parametrize(
    ("session", "code"),
    [
        ((0, 0), ErrorCode.NONE),
        ((0, -1), ErrorCode.NONE),
        ((5, 1), ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ((0, 1), ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ],
)
def test_sessions_are_neither_given_nor_taken(
    client: RawClient, topic: str, session: tuple[int, int], code: ErrorCode
) -> None:
    with client:
        assert client.fetch(topic, 0, session=session)[0] == code


@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, ErrorCode.NONE), (0, ErrorCode.NONE), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_a_leader_epoch_that_nobody_has_is_refused(client: RawClient, topic: str, epoch: int, code: ErrorCode) -> None:
    with client:
        assert client.fetch(topic, 0, leader_epoch=epoch)[0] == code


@pytest.mark.parametrize("partition", [-1, 1, 2**31 - 1])
def test_an_unknown_partition_is_refused_at_once(client: RawClient, topic: str, partition: int) -> None:
    with client:
        begin = monotonic()
        error = client.fetch(topic, 0, partition=partition, wait_ms=60_000)[0]
    assert error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert monotonic() - begin < 60


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (EARLIEST, (0, 0)),
        (LATEST, (0, 3)),
        (0, (0, 0)),
        (1_000, (0, 0)),
        (INT64_MAX, (0, -1)),
        (-3, (ErrorCode.INVALID_REQUEST, -1)),
        (-(2**63), (ErrorCode.INVALID_REQUEST, -1)),
    ],
)
def test_offsets_are_found_by_time(client: RawClient, topic: str, timestamp: int, expected: tuple[int, int]) -> None:
    part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    message = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(part,)),))
    with client:
        found = client.call(ApiKey.LIST_OFFSETS, 5, message).topics[0].partitions[0]
    assert (found.error_code, found.offset) == expected
