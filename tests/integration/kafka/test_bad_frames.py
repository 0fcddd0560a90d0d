"""Bytes that are no request: the connection ends, and nothing else happens."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from contextlib import suppress

import pytest

from brokers.wire.apis.membership import JoinGroupProtocol, JoinGroupRequest
from brokers.wire.apis.metadata import MetadataRequest
from brokers.wire.apis.table import ApiKey, ApiVersionsRequest
from brokers.wire.errors import ErrorCode
from tests.integration.kafka.cluster import Cluster
from tests.integration.kafka.contract import make_topic, unharmed
from tests.integration.kafka.raw import (
    Closed,
    RawClient,
    batch,
    fetch_request,
    fetched,
    framed,
    head,
    produce_request,
    produced,
    request,
)

REQUEST_BYTES_MAX = 1024 * 1024
VARINT_TOO_LONG = b"\xff\xff\xff\xff\xff\x01"
VARINT_HUGE = b"\xff\xff\xff\xff\x0f"
FLEXIBLE = head(ApiKey.OFFSET_FETCH, 6)
BAD_FRAMES: dict[str, bytes] = {
    "length 0": struct.pack(">i", 0),
    "length -1": struct.pack(">i", -1),
    "length -2^31": struct.pack(">i", -(2**31)),
    "length 2^31-1": struct.pack(">i", 2**31 - 1),
    "length max+1": struct.pack(">i", 100 * 1024 * 1024 + 1),
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS hello": bytes.fromhex("1603010200010001fc0303") + bytes(64),
    "a large request that is no produce request": struct.pack(">ih", REQUEST_BYTES_MAX + 1, ApiKey.FETCH),
    "api key -1": framed(head(-1, 0)),
    "api key 32767": framed(head(32767, 0)),
    "an inter-broker api": framed(head(4, 0) + bytes(64)),
    "version -1": framed(head(ApiKey.METADATA, -1)),
    "version max+1": framed(head(ApiKey.METADATA, 9)),
    "produce version 2": framed(head(ApiKey.PRODUCE, 2) + bytes(64)),
    "produce version 8": framed(head(ApiKey.PRODUCE, 8) + bytes(64)),
    "header only": framed(head(ApiKey.METADATA, 5)),
    "negative client id": framed(struct.pack(">hhih", ApiKey.METADATA, 5, 1, -2) + bytes(16)),
    "client id beyond the frame": framed(struct.pack(">hhih", ApiKey.METADATA, 5, 1, 32767)),
    "2^32-1 tagged fields": framed(FLEXIBLE + VARINT_HUGE),
    "an over-long varint": framed(FLEXIBLE + VARINT_TOO_LONG),
    "a tag twice": framed(FLEXIBLE + b"\x02\x05\x00\x05\x00" + b"\x00\x00\x00\x00"),
    "2^31-1 topics": framed(head(ApiKey.METADATA, 5) + struct.pack(">i", 2**31 - 1)),
    "-2 topics": framed(head(ApiKey.METADATA, 5) + struct.pack(">i", -2)),
    "null where none may be": framed(head(ApiKey.LIST_OFFSETS, 1) + struct.pack(">ii", -1, -1)),
    "a nested count of 2^31-1": framed(head(2, 1) + struct.pack(">iih1si", -1, 1, 1, b"t", 2**31 - 1)),
    "a negative string length": framed(head(ApiKey.METADATA, 5) + struct.pack(">ih", 1, -7)),
    "a string that is not UTF-8": framed(head(ApiKey.METADATA, 5) + struct.pack(">ih2sb", 1, 2, b"\xff\xfe", 1)),
    "trailing garbage": framed(request(ApiKey.METADATA, 5, MetadataRequest(topics=()))[4:] + b"x"),
    "a body longer than its frame says": framed(produce_request("t", batch(b"v"))[4:-3]),
    "10,001 partitions in a fetch": framed(
        head(ApiKey.FETCH, 4) + struct.pack(">iiiibih1si", -1, 0, 1, 1, 0, 1, 1, b"t", 10_001) + bytes(16 * 10_001)
    ),
    "10,001 partitions in a produce request": framed(
        head(ApiKey.PRODUCE, 7) + struct.pack(">hhiih1si", -1, 1, 1, 1, 1, b"t", 10_001) + bytes(8 * 10_001)
    ),
    "10,001 topics": framed(head(ApiKey.METADATA, 4) + struct.pack(">i", 10_001) + bytes(2 * 10_001 + 1)),
    "10^5 partitions in a fetch": framed(
        head(ApiKey.FETCH, 4) + struct.pack(">iiiibih1si", -1, 0, 1, 1, 0, 1, 1, b"t", 100_000) + bytes(16 * 100_000)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_a_bad_frame_ends_its_connection_and_nothing_else(name: str, cluster: Cluster, topic: str) -> None:
    with unharmed(cluster, topic), RawClient(cluster.port()) as client:
        with suppress(ConnectionResetError):  # the broker need not read a long frame to its end
            client.send(BAD_FRAMES[name])
        assert client.closed_by_broker()


def test_requests_before_a_bad_frame_are_carried_out_and_answered(cluster: Cluster, topic: str) -> None:
    with RawClient(cluster.port()) as client:
        make_topic(client, topic)
        client.send(produce_request(topic, batch(b"good")) + struct.pack(">i", -1))
        assert produced(client.receive()) == (0, 0)
        assert client.closed_by_broker()


def cut_anywhere(end: int, topic: str) -> bytes:
    return produce_request(topic, batch(b"value"))[:end]


def test_a_frame_cut_at_any_byte_changes_nothing(cluster: Cluster, topic: str) -> None:
    with unharmed(cluster, topic):
        for end in range(len(produce_request(topic, batch(b"value")))):
            with RawClient(cluster.port()) as client:
                client.send(cut_anywhere(end, topic))


def one_byte_at_a_time(client: RawClient, data: bytes) -> None:
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for number in range(len(data)):
        client.send(data[number : number + 1])


def all_at_once(client: RawClient, data: bytes) -> None:
    client.send(data)


@pytest.mark.parametrize("how", [one_byte_at_a_time, all_at_once])
def test_frames_are_found_however_they_arrive(
    how: Callable[[RawClient, bytes], None], cluster: Cluster, topic: str
) -> None:
    with RawClient(cluster.port()) as client:
        make_topic(client, topic)
        data = b"".join(produce_request(topic, batch(b"v%d" % number), correlation_id=number) for number in range(5))
        how(client, data)
        answers = [client.receive() for _ in range(5)]
    assert [struct.unpack_from(">i", answer)[0] for answer in answers] == list(range(5))
    assert [produced(answer) for answer in answers] == [(0, number) for number in range(5)]


def test_a_half_closed_client_still_gets_its_answers(cluster: Cluster, topic: str) -> None:
    with RawClient(cluster.port()) as client:
        make_topic(client, topic)
        client.send(produce_request(topic, batch(b"last")))
        client.socket.shutdown(socket.SHUT_WR)
        assert produced(client.receive()) == (0, 0)
        assert client.closed_by_broker()


def test_a_client_that_left_while_its_fetch_waited_is_answered_and_forgotten(cluster: Cluster, topic: str) -> None:
    """However long it was ready to wait: else clients that are gone would use up the connections."""
    with RawClient(cluster.port()) as client:
        make_topic(client, topic)
        waits = fetch_request(topic, 0, wait_ms=300_000, bytes_min=1 << 30)
        client.send(waits + waits)
        client.socket.shutdown(socket.SHUT_WR)
        assert [fetched(client.receive())[2] for _ in range(2)] == [b"", b""]
        assert client.closed_by_broker()


def test_a_client_that_left_while_it_joined_a_group_is_forgotten(cluster: Cluster, topic: str) -> None:
    """A round waits for its members for minutes, if they allow it."""
    offers = (JoinGroupProtocol(name="range", metadata=b""),)
    join = JoinGroupRequest(
        group_id=topic,
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        member_id="",
        protocol_type="consumer",
        protocols=offers,
    )
    with RawClient(cluster.port()) as first, RawClient(cluster.port()) as second:
        first.send(request(ApiKey.JOIN_GROUP, 3, join))
        first.receive()
        second.send(request(ApiKey.JOIN_GROUP, 3, join))
        second.socket.shutdown(socket.SHUT_WR)
        assert second.closed_by_broker()


@pytest.mark.parametrize("client_id", [None, b"", b"\xff\xfe", b"x" * 32767])
def test_any_client_id_is_taken(client_id: bytes | None, cluster: Cluster) -> None:
    size = -1 if client_id is None else len(client_id)
    frame = framed(struct.pack(">hhih", ApiKey.API_VERSIONS, 0, 9, size) + (client_id or b""))
    with RawClient(cluster.port()) as client:
        client.send(frame)
        assert struct.unpack_from(">ih", client.receive()) == (9, ErrorCode.NONE)


def test_a_correlation_id_may_be_used_again(cluster: Cluster) -> None:
    frame = request(ApiKey.METADATA, 5, MetadataRequest(topics=(), allow_auto_topic_creation=False), correlation_id=5)
    with RawClient(cluster.port()) as client:
        client.send(frame * 3)
        assert [struct.unpack_from(">i", client.receive())[0] for _ in range(3)] == [5, 5, 5]


def test_a_too_new_version_of_api_versions_is_answered_in_version_0(cluster: Cluster) -> None:
    with RawClient(cluster.port()) as client:
        client.send(framed(head(ApiKey.API_VERSIONS, 99) + VARINT_TOO_LONG))
        assert struct.unpack_from(">ih", client.receive()) == (1, ErrorCode.UNSUPPORTED_VERSION)
        assert client.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest()).error_code == ErrorCode.NONE


def test_a_connection_that_sends_nothing_harms_nobody(cluster: Cluster, topic: str) -> None:
    with unharmed(cluster, topic):
        silent = [RawClient(cluster.port()) for _ in range(50)]
        for client in silent:
            client.send(b"\0\0\0")
        for client in silent:
            client.socket.close()


def test_many_connects_and_disconnects_leave_nothing_behind(cluster: Cluster, topic: str) -> None:
    with unharmed(cluster, topic):
        for _ in range(500):
            with RawClient(cluster.port()) as client:
                client.send(request(ApiKey.METADATA, 5, MetadataRequest(topics=())))


def test_a_client_that_does_not_read_is_not_read_from_for_ever(cluster: Cluster, topic: str) -> None:
    """Its answers are bounded, the rest of its requests stays in its own socket, and it gets all when it reads."""
    wanted = 60
    with RawClient(cluster.port()) as other:
        make_topic(other, topic)
        assert other.produce(topic, batch(b"x" * 900_000))[0] == 0
    with unharmed(cluster, f"{topic}-other"), RawClient(cluster.port()) as client:
        client.send(b"".join(fetch_request(topic, 0, correlation_id=number) for number in range(wanted)))
        answers = [client.receive() for _ in range(wanted)]
    assert [struct.unpack_from(">i", answer)[0] for answer in answers] == list(range(wanted))
    assert all(len(fetched(answer)[2]) > 900_000 for answer in answers)


def test_the_broker_ends_a_connection_only_once(cluster: Cluster) -> None:
    with RawClient(cluster.port()) as client:
        client.send(struct.pack(">i", -1) * 1000)
        with pytest.raises(Closed):
            client.receive()
