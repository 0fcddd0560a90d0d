"""Produce, versions 3 to 7, by hand: this is the hot path.

Most clients send one partition a request, and from one request to the next only the size, the correlation id and
the batch change. `Template` is what such a request has in common with the next: the listener keeps a few for each
connection, keyed by the very bytes, and then neither reads nor writes the rest again (`make bench`, 8 B x 1).
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from brokers.wire.errors import Malformed, MalformedReason
from brokers.wire.rows import set_columns
from brokers.wire.schema import check_count, check_named, text, truncated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LOG_START_SINCE: Final = 5
# Behind version and correlation id: client id, transactional id, acks, timeout, count of topics.
CORRELATION_END: Final = 8
CORRELATION_AT: Final = 4
_int16_at = Struct(">h").unpack_from
_int32_at = Struct(">i").unpack_from
_acks_at = Struct(">hii").unpack_from
_part_at = Struct(">ii").unpack_from
_int32 = Struct(">i").pack
_TOPIC_BYTES_MIN: Final = 6
_PART_BYTES_MIN: Final = 8
NO_OFFSET: Final = -1


class Part(NamedTuple):
    """One partition's records: `data[start:end]` of the request; empty where they were null."""

    topic: str
    partition: int
    start: int
    end: int


class ProduceRequest(NamedTuple):
    version: int
    correlation_id: int
    transactional: bool
    acks: int
    timeout_ms: int
    parts: list[Part]


class Outcome(NamedTuple):
    """The outcome of one part."""

    error: int
    base_offset: int = NO_OFFSET
    log_start: int = NO_OFFSET


def read(data: bytes | bytearray, at: int, end: int) -> ProduceRequest:
    """Read the request that lies in `data[at:end]`, header included. Raises `Malformed`."""
    version = _int16_at(data, at + 2)[0]
    correlation_id = _int32_at(data, at + CORRELATION_AT)[0]
    at = _skip_string(data, at + CORRELATION_END, end)
    after_transaction = _skip_string(data, at, end)
    transactional = after_transaction - at > 2
    at = after_transaction + 10
    if at > end:
        raise truncated(10, end - after_transaction)
    acks, timeout_ms, topics = _acks_at(data, after_transaction)
    check_count(topics, _TOPIC_BYTES_MIN, end - at)
    parts: list[Part] = []
    for _ in range(topics):
        name_end = _skip_string(data, at, end)
        if name_end - at == 2 and _int16_at(data, at)[0] < 0:
            raise Malformed(MalformedReason.NULL, "topic name")
        topic = text(bytes(data[at + 2 : name_end]))
        if name_end + 4 > end:
            raise truncated(4, end - name_end)
        count = _int32_at(data, name_end)[0]
        at = name_end + 4
        check_count(count, _PART_BYTES_MIN, end - at)
        check_named(len(parts) + count)
        for _ in range(count):
            if at + 8 > end:
                raise truncated(8, end - at)
            partition, size = _part_at(data, at)
            at += 8
            if size < -1:
                raise Malformed(MalformedReason.NEGATIVE_LENGTH, f"records of {size} bytes")
            size = max(size, 0)
            if size > end - at:
                raise truncated(size, end - at)
            parts.append(Part(topic, partition, at, at + size))
            at += size
    if at != end:
        raise Malformed(MalformedReason.TRAILING_BYTES, f"{end - at} bytes after Produce")
    return ProduceRequest(version, correlation_id, transactional, acks, timeout_ms, parts)


def answer(request: ProduceRequest, outcomes: Iterable[Outcome]) -> bytes:
    """The answer's frame; `outcomes` in the order of the request's parts."""
    topics: list[tuple[str, list[bytes]]] = []
    for part, outcome in zip(request.parts, outcomes, strict=True):
        if not topics or topics[-1][0] != part.topic:
            topics.append((part.topic, []))
        topics[-1][1].append(_outcome(request.version, part.partition, outcome))
    out = [_int32(request.correlation_id), _int32(len(topics))]
    for topic, entries in topics:
        out += [_string(topic), _int32(len(entries)), *entries]
    out.append(_int32(0))
    body = b"".join(out)
    return _int32(len(body)) + body


_OUTCOME: Final = Struct(">ihqq")
_OUTCOME_WITH_START: Final = Struct(">ihqqq")


def _outcome(version: int, partition: int, outcome: Outcome) -> bytes:
    if version >= _LOG_START_SINCE:
        return _OUTCOME_WITH_START.pack(partition, outcome.error, outcome.base_offset, -1, outcome.log_start)
    return _OUTCOME.pack(partition, outcome.error, outcome.base_offset, -1)


_OUTCOME_BYTES_IN_MIDDLE: Final = 6  # the partition, and that there was no error


class Template:
    """The common part of one producer's requests to one partition, and their answers.

    A request fits if `data[at + CORRELATION_END : at + records_at - 4]` equals `key` and `data[at : at + 4]` is
    `head`; then its records begin at `at + records_at`, after their four-byte size, and must fill the frame.
    """

    __slots__ = (
        "_layout", "_middle", "_size", "_start_too", "acks", "head", "key", "partition", "records_at", "timeout_ms",
        "topic",
    )  # fmt: skip

    def __init__(self, data: bytes | bytearray, at: int, request: ProduceRequest) -> None:
        part = request.parts[0]
        self.topic = part.topic
        self.partition = part.partition
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.records_at = part.start - at
        self.head = bytes(data[at : at + CORRELATION_AT])
        self.key = bytes(data[at + CORRELATION_END : part.start - 4])
        self._middle = _int32(1) + _string(part.topic) + _int32(1) + _int32(part.partition) + b"\0\0"
        self._start_too = request.version >= _LOG_START_SINCE
        self._layout = Struct(f">ii{len(self._middle)}sqq{'q' if self._start_too else ''}i")
        self._size = self._layout.size - 4

    def answer(self, correlation_id: int, base_offset: int, log_start: int) -> bytes:
        """The frame that says that the records were stored."""
        if self._start_too:
            return self._layout.pack(self._size, correlation_id, self._middle, base_offset, -1, log_start, 0)
        return self._layout.pack(self._size, correlation_id, self._middle, base_offset, -1, 0)

    def answers(self, correlation_ids: Sequence[int], base_offsets: Sequence[int], log_start: int) -> bytes:
        """The frames that `answer` makes, one after another."""
        count, stride = len(correlation_ids), self._layout.size
        frames = bytearray(self.answer(0, 0, log_start) * count)
        set_columns(frames, 4, stride, Struct(f">{count}i").pack(*correlation_ids), 4)
        set_columns(frames, 8 + len(self._middle), stride, Struct(f">{count}q").pack(*base_offsets), 8)
        return bytes(frames)

    def refusal(self, correlation_id: int, error: int) -> bytes:
        """The frame that says that they were not."""
        version = _LOG_START_SINCE if self._start_too else 0
        outcome = _outcome(version, self.partition, Outcome(error))
        head = self._middle[:-_OUTCOME_BYTES_IN_MIDDLE]
        return _int32(self._size) + _int32(correlation_id) + head + outcome + _int32(0)


def fits_template(request: ProduceRequest) -> bool:
    """Only plain requests do: one partition, no transaction, an answer that is wanted."""
    return len(request.parts) == 1 and not request.transactional and request.acks in {1, -1}


def _skip_string(data: bytes | bytearray, at: int, end: int) -> int:
    """Where a nullable string that begins at `at` ends."""
    if at + 2 > end:
        raise truncated(2, end - at)
    size = _int16_at(data, at)[0]
    if size < -1:
        raise Malformed(MalformedReason.NEGATIVE_LENGTH, f"string of {size} bytes")
    at += 2 + max(size, 0)
    if at > end:
        raise truncated(size, end - at)
    return at


def _string(value: str) -> bytes:
    raw = value.encode()
    return Struct(f">h{len(raw)}s").pack(len(raw), raw)
