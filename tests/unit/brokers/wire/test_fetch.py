"""Fetch by hand, compared with kafka-python's bytes."""

from __future__ import annotations

import struct
from typing import Any, cast

import pytest

from brokers.wire.apis import fetch
from brokers.wire.apis.fetch import FetchRequest, Found, Part
from brokers.wire.errors import Malformed, MalformedReason
from tests.property.brokers.wire.reference import theirs

VERSIONS = range(4, 12)


def body(version: int, *, forgotten: bool = False) -> bytes:
    """A request for three partitions of two topics, as kafka-python writes it."""

    def part(number: int, offset: int) -> tuple[int, ...]:
        epoch = (4,) if version >= 9 else ()
        log_start = (-1,) if version >= 5 else ()
        return (number, *epoch, offset, *log_start, 1_000)

    fields: list[Any] = [-1, 500, 1, 50_000_000, 1]
    if version >= 7:
        fields += [9, 3]
    fields.append([("first", [part(0, 5), part(1, 2**40)]), ("second", [part(2, 0)])])
    if version >= 7:
        fields.append([("gone", [1, 2, 3])] if forgotten else [])
    if version >= 11:
        fields.append("rack")
    return bytes(theirs("FetchRequest")(*fields, version=version).encode())


def read(version: int, data: bytes) -> FetchRequest:
    return fetch.read(data, 0, version, 77)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("forgotten", [False, True])
def test_a_request_of_kafka_python_is_read(version: int, forgotten: bool) -> None:
    request = read(version, body(version, forgotten=forgotten))
    epoch = 4 if version >= 9 else -1
    assert request == FetchRequest(
        version=version,
        correlation_id=77,
        replica_id=-1,
        wait_ms_max=500,
        bytes_min=1,
        bytes_max=50_000_000,
        isolation_level=1,
        session_id=9 if version >= 7 else 0,
        session_epoch=3 if version >= 7 else -1,
        parts=[
            Part("first", 0, epoch, 5, 1_000),
            Part("first", 1, epoch, 2**40, 1_000),
            Part("second", 2, epoch, 0, 1_000),
        ],
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("records", [[b"abc", b"", b"xyz"], [b"", b"", b""], [b"", b"q", b""]])
def test_an_answer_has_the_bytes_of_kafka_python(version: int, records: list[bytes]) -> None:
    request = read(version, body(version))
    found = [Found(0, 10, 1, records[0]), Found(1, 20, 2, records[1]), Found(0, 30, 3, records[2])]
    pieces = fetch.answer(request, found)
    assert b"".join(cast("list[bytes]", pieces)) == reference(version, records)


def reference(version: int, records: list[bytes]) -> bytes:
    def part(number: int, error: int, high: int, start: int, data: bytes) -> tuple[Any, ...]:
        log_start = (start,) if version >= 5 else ()
        replica = (-1,) if version >= 11 else ()
        return (number, error, high, high, *log_start, [], *replica, data)

    topics = [
        ("first", [part(0, 0, 10, 1, records[0]), part(1, 1, 20, 2, records[1])]),
        ("second", [part(2, 0, 30, 3, records[2])]),
    ]
    fields = [0, 0, 0, topics] if version >= 7 else [0, topics]
    response = theirs("FetchResponse")(*fields, version=version)
    response.with_header(correlation_id=77)
    return bytes(response.encode(header=True, framed=True))


def test_records_are_handed_on_as_they_are() -> None:
    records = memoryview(b"records")
    request = read(11, body(11))
    pieces = fetch.answer(request, [Found(0, 1, 0, records), Found(0), Found(0)])
    assert any(piece is records for piece in pieces)


def test_a_refusal_reads_as_an_answer_without_topics() -> None:
    response = theirs("FetchResponse")(0, 70, 0, [], version=11)
    response.with_header(correlation_id=77)
    assert fetch.refusal(read(11, body(11)), 70) == bytes(response.encode(header=True, framed=True))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_cut_and_every_tail_is_malformed(version: int) -> None:
    data = body(version, forgotten=True)
    for end in range(len(data)):
        with pytest.raises(Malformed):
            read(version, data[:end])
    with pytest.raises(Malformed):
        read(version, data + b"\0")


FIXED = struct.pack(">iiiib", -1, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (struct.pack(">i", 2**31 - 1), MalformedReason.COUNT),
        (struct.pack(">i", -1), MalformedReason.COUNT),
        (struct.pack(">ihi", 1, -1, 0), MalformedReason.NULL),
        (struct.pack(">ihi", 1, 32767, 0), MalformedReason.TRUNCATED),
        (struct.pack(">ih1si", 1, 1, b"\xff", 0), MalformedReason.UTF8),
        (struct.pack(">ih1siq", 1, 1, b"t", 2**31 - 1, 0), MalformedReason.COUNT),
    ],
)
def test_impossible_lengths_and_counts_are_malformed(tail: bytes, reason: MalformedReason) -> None:
    with pytest.raises(Malformed) as refused:
        read(4, FIXED + tail)
    assert refused.value.reason is reason
