"""Requests that are taken apart together: only what would be taken one by one, and nothing else."""

from __future__ import annotations

import struct

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from brokers.wire.apis import produce
from brokers.wire.apis.produce import CORRELATION_END, Outcome, Template
from brokers.wire.batch import CRC_AT, CRC_BEGIN, PLACE, BatchError, check_produced, parse_header
from brokers.wire.budget import Budget
from brokers.wire.framing import SIZE_BYTES, FrameLimits, ReceiveBuffer
from brokers.wire.rows import RowLayout
from tests.integration.kafka.raw import batch, produce_request

BATCH_BYTES_MAX = 1 << 20
versions = st.integers(3, 7)
lengths = st.integers(8, 300)


def requests(version: int, values: list[bytes], topic: str = "one") -> list[bytes]:
    return [
        produce_request(topic, batch(value), correlation_id=number, version=version)
        for number, value in enumerate(values)
    ]


def of_size(length: int, count: int) -> list[bytes]:
    return [struct.pack(">q", number).ljust(length, b"x") for number in range(count)]


def template_of(frame: bytes) -> Template:
    body = frame[SIZE_BYTES:]
    return Template(body, 0, produce.read(body, 0, len(body)))


def fits(template: Template, body: bytes) -> bool:
    """What is asked of one request, taken alone."""
    key = body[CORRELATION_END : template.records_at - SIZE_BYTES]
    size = struct.unpack_from(">i", body, template.records_at - SIZE_BYTES)[0]
    if not body.startswith(template.head) or key != template.key or size != len(body) - template.records_at:
        return False
    try:
        check_produced(body[template.records_at :], BATCH_BYTES_MAX)
    except BatchError:
        return False
    return True


@given(version=versions, length=lengths, count=st.integers(1, 40))
def test_a_row_holds_what_its_requests_hold(version: int, length: int, count: int) -> None:
    frames = requests(version, of_size(length, count))
    view = memoryview(bytearray(b"".join(frames)))
    row = RowLayout(template_of(frames[0]), len(frames[0]) - SIZE_BYTES).read(view, 0, count, BATCH_BYTES_MAX)
    assert row is not None
    at = template_of(frames[0]).records_at + SIZE_BYTES
    assert list(row.correlation_ids) == list(range(count))
    assert [bytes(one) for one in row.batches()] == [frame[at:] for frame in frames]
    assert list(row.timestamps) == [parse_header(frame, at).max_timestamp for frame in frames]


@given(version=versions, length=lengths, where=st.data())
def test_a_row_with_any_byte_changed_is_none_or_one_of_good_requests(
    version: int, length: int, where: st.DataObject
) -> None:
    frames = requests(version, of_size(length, 5))
    template, size = template_of(frames[0]), len(frames[0])
    data = bytearray(b"".join(frames))
    at = where.draw(st.integers(0, len(data) - 1))
    data[at] ^= where.draw(st.integers(1, 255))
    bodies = [bytes(data[begin + SIZE_BYTES : begin + size]) for begin in range(0, len(data), size)]
    row = RowLayout(template, size - SIZE_BYTES).read(memoryview(data), 0, 5, BATCH_BYTES_MAX)
    if row is None:
        return
    sizes = [struct.unpack_from(">i", data, begin)[0] for begin in range(0, len(data), size)]
    assert sizes == [size - SIZE_BYTES] * 5
    assert all(fits(template, body) for body in bodies)


@given(length=lengths, where=st.integers(0, 4), attributes=st.sampled_from([1, 8, 16, 32]))
def test_a_batch_of_another_kind_is_in_no_row(length: int, where: int, attributes: int) -> None:
    frames = requests(7, of_size(length, 5))
    template, size = template_of(frames[0]), len(frames[0])
    at = template.records_at + SIZE_BYTES
    frames[where] = frames[where][:at] + _with_attributes(frames[where][at:], attributes)
    view = memoryview(bytearray(b"".join(frames)))
    assert RowLayout(template, size - SIZE_BYTES).read(view, 0, 5, BATCH_BYTES_MAX) is None


@given(length=lengths, where=st.sets(st.integers(0, 4), min_size=1))
def test_batches_of_idempotent_producers_are_in_no_row(length: int, where: set[int]) -> None:
    values = of_size(length, 5)
    frames = [
        produce_request("one", batch(value, producer=(9, 0, number)) if number in where else batch(value))
        for number, value in enumerate(values)
    ]
    view = memoryview(bytearray(b"".join(frames)))
    layout = RowLayout(template_of(frames[0]), len(frames[0]) - SIZE_BYTES)
    assert layout.read(view, 0, 5, BATCH_BYTES_MAX) is None


def _with_attributes(data: bytes, attributes: int) -> bytes:
    made = bytearray(data)
    struct.pack_into(">h", made, CRC_BEGIN, attributes)
    struct.pack_into(">I", made, CRC_AT, crc32c(bytes(made[CRC_BEGIN:])))
    return bytes(made)


@given(length=lengths, count=st.integers(1, 40), offset=st.integers(0, 2**62), epoch=st.integers(0, 2**31 - 1))
def test_places_are_written_as_one_by_one(length: int, count: int, offset: int, epoch: int) -> None:
    frames = requests(7, of_size(length, count))
    data = bytearray(b"".join(frames))
    row = RowLayout(template_of(frames[0]), len(frames[0]) - SIZE_BYTES).read(
        memoryview(data), 0, count, BATCH_BYTES_MAX
    )
    assert row is not None
    expected = bytearray(data)
    at = template_of(frames[0]).records_at + SIZE_BYTES
    offsets = range(offset, offset + count)
    for number, base_offset in enumerate(offsets):
        PLACE.pack_into(expected, number * len(frames[0]) + at, base_offset, row.header.length, epoch)
    row.place(offsets, epoch)
    assert data == expected


@given(version=versions, first=st.integers(0, 2**31 - 100), count=st.integers(1, 40), offset=st.integers(0, 2**62))
def test_answers_together_are_the_answers_one_by_one(version: int, first: int, count: int, offset: int) -> None:
    frame = requests(version, [b"12345678"])[0]
    template, body = template_of(frame), frame[SIZE_BYTES:]
    ids, offsets = range(first, first + count), range(offset, offset + count)
    request = produce.read(body, 0, len(body))
    one_by_one = [
        produce.answer(request._replace(correlation_id=number), [Outcome(0, at, 3)])
        for number, at in zip(ids, offsets, strict=True)
    ]
    assert template.answers(ids, offsets, 3) == b"".join(one_by_one)


@given(sizes=st.lists(st.integers(10, 400), min_size=1, max_size=4), repeats=st.lists(st.integers(1, 30), min_size=4))
def test_frames_of_one_size_are_found_as_others_are(sizes: list[int], repeats: list[int]) -> None:
    bodies = [bytes([size % 251]) * size for size, count in zip(sizes, repeats, strict=False) for _ in range(count)]
    data = b"".join(struct.pack(">i", len(body)) + body for body in bodies) + b"\0\0"
    buffer = ReceiveBuffer(FrameLimits(), Budget(0, 0))
    found: list[bytes] = []
    while data:
        room = buffer.writable()
        count = min(len(room), len(data))
        room[:count] = data[:count]
        places = buffer.received(count)
        assert buffer.alike <= len(places)
        assert len({end - begin for begin, end in places[: buffer.alike]}) <= 1
        found += [bytes(buffer.data[begin:end]) for begin, end in places]
        data = data[count:]
    assert found == bodies
