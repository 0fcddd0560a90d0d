"""Produce by hand, compared with kafka-python's bytes."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from brokers.wire.apis import produce
from brokers.wire.apis.produce import Outcome, Part
from brokers.wire.errors import Malformed, MalformedReason
from tests.property.brokers.wire.reference import theirs

VERSIONS = range(3, 8)
Topics = list[tuple[str, list[tuple[int, bytes | None]]]]
TWO: Topics = [("first", [(0, b"abc"), (7, b"")]), ("second", [(1, None)])]


def request_bytes(version: int, topics: Topics = TWO, acks: int = 1, transaction: str | None = None) -> bytes:
    request = theirs("ProduceRequest")(transaction, acks, 30_000, topics, version=version)
    request.with_header(correlation_id=77, client_id="tester")
    return bytes(request.encode(header=True))


def records(data: bytes, part: Part) -> bytes:
    return data[part.start : part.end]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_of_kafka_python_is_read(version: int) -> None:
    data = request_bytes(version, acks=-1)
    request = produce.read(data, 0, len(data))
    assert (request.version, request.correlation_id, request.acks, request.timeout_ms) == (version, 77, -1, 30_000)
    assert not request.transactional
    assert [(part.topic, part.partition, records(data, part)) for part in request.parts] == [
        ("first", 0, b"abc"),
        ("first", 7, b""),
        ("second", 1, b""),
    ]


def test_a_transactional_id_is_noticed() -> None:
    data = request_bytes(5, transaction="mine")
    assert produce.read(data, 0, len(data)).transactional


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_has_the_bytes_of_kafka_python(version: int) -> None:
    data = request_bytes(version)
    request = produce.read(data, 0, len(data))
    outcomes = [Outcome(0, 5, 1), Outcome(3), Outcome(0, 2**40, 0)]
    topics: list[Any] = [("first", [(0, 0, 5, -1, 1), (7, 3, -1, -1, -1)]), ("second", [(1, 0, 2**40, -1, 0)])]
    assert produce.answer(request, outcomes) == response_bytes(version, topics)


def response_bytes(version: int, topics: list[Any]) -> bytes:
    width = 5 if version >= 5 else 4
    cut = [(name, [part[:width] for part in parts]) for name, parts in topics]
    response = theirs("ProduceResponse")(cut, 0, version=version)
    response.with_header(correlation_id=77)
    return bytes(response.encode(header=True, framed=True))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_template_answers_as_the_long_way_does(version: int) -> None:
    data = request_bytes(version, [("topic", [(3, b"records")])])
    request = produce.read(data, 0, len(data))
    template = produce.Template(data, 0, request)
    assert data[:4] == template.head
    assert data[produce.CORRELATION_END : template.records_at - 4] == template.key
    assert data[template.records_at :] == b"records"
    assert template.answer(77, 41, 2) == produce.answer(request, [Outcome(0, 41, 2)])
    assert template.refusal(77, 45) == produce.answer(request, [Outcome(45)])


@pytest.mark.parametrize(
    ("topics", "acks", "transaction", "fits"),
    [
        ([("t", [(0, b"x")])], 1, None, True),
        ([("t", [(0, b"x")])], -1, None, True),
        ([("t", [(0, b"x")])], 0, None, False),
        ([("t", [(0, b"x")])], 1, "id", False),
        (TWO, 1, None, False),
        ([], 1, None, False),
    ],
)
def test_only_plain_requests_fit_a_template(topics: Topics, acks: int, transaction: str | None, fits: bool) -> None:
    data = request_bytes(7, topics, acks, transaction)
    assert produce.fits_template(produce.read(data, 0, len(data))) is fits


def test_every_cut_is_malformed() -> None:
    data = request_bytes(7)
    for end in range(10, len(data)):
        with pytest.raises(Malformed):
            produce.read(data[:end], 0, end)


def test_bytes_behind_the_request_are_malformed() -> None:
    data = request_bytes(7) + b"\0"
    with pytest.raises(Malformed) as refused:
        produce.read(data, 0, len(data))
    assert refused.value.reason is MalformedReason.TRAILING_BYTES


HEAD = struct.pack(">hhih", 0, 7, 1, -1)
BODY = HEAD + struct.pack(">hhi", -1, 1, 100)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (HEAD[:-2] + struct.pack(">h", -2) + bytes(20), MalformedReason.NEGATIVE_LENGTH),
        (HEAD[:-2] + struct.pack(">h", 32767), MalformedReason.TRUNCATED),
        (BODY + struct.pack(">i", 2**31 - 1), MalformedReason.COUNT),
        (BODY + struct.pack(">i", -1), MalformedReason.COUNT),
        (BODY + struct.pack(">ihi", 1, -1, 0), MalformedReason.NULL),
        (BODY + struct.pack(">ih2si", 1, 2, b"\xff\xfe", 0), MalformedReason.UTF8),
        (BODY + struct.pack(">ih1si", 1, 1, b"t", 2**31 - 1), MalformedReason.COUNT),
        (BODY + struct.pack(">ih1siii", 1, 1, b"t", 1, 0, 2**31 - 1), MalformedReason.TRUNCATED),
        (BODY + struct.pack(">ih1siii", 1, 1, b"t", 1, 0, -2), MalformedReason.NEGATIVE_LENGTH),
    ],
)
def test_impossible_lengths_and_counts_are_malformed(data: bytes, reason: MalformedReason) -> None:
    with pytest.raises(Malformed) as refused:
        produce.read(data, 0, len(data))
    assert refused.value.reason is reason
