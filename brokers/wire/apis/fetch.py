"""Fetch, versions 4 to 11, by hand: this is the hot path. Records go out as they lie in the log."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from brokers.wire.errors import Malformed, MalformedReason
from brokers.wire.schema import check_count, check_named, text, truncated

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOG_START_SINCE: Final = 5
_SESSION_SINCE: Final = 7
_EPOCH_SINCE: Final = 9
_RACK_SINCE: Final = 11
_COUNT: Final = Struct(">i")
_LENGTH: Final = Struct(">h")
# Replica, wait, bytes at least and at most, isolation; session id and epoch (7+); count of topics.
_HEAD_V4: Final = Struct(">iiiibi")
_HEAD_V7: Final = Struct(">iiiibiii")
# Partition, leader epoch (9+), offset, a follower's log start (5+), bytes.
_PART_V4: Final = Struct(">iqi")
_PART_V5: Final = Struct(">iqqi")
_PART_V9: Final = Struct(">iiqqi")
_TOPIC_BYTES_MIN: Final = 6


class Part(NamedTuple):
    """A fetch of one partition; `leader_epoch` is -1 where the client names none."""

    topic: str
    partition: int
    leader_epoch: int
    offset: int
    bytes_max: int


class FetchRequest(NamedTuple):
    version: int
    correlation_id: int
    replica_id: int
    wait_ms_max: int
    bytes_min: int
    bytes_max: int
    isolation_level: int
    session_id: int
    session_epoch: int
    parts: list[Part]


class Records(Protocol):
    """Bytes, or what stands for them until they are sent."""

    def __len__(self) -> int: ...


class Found(NamedTuple):
    """One partition's answer; `records` are whole batches as they are stored."""

    error: int
    high_watermark: int = -1
    log_start: int = -1
    records: Records = b""


def read(data: bytes, at: int, version: int, correlation_id: int) -> FetchRequest:
    """Read the body that begins at `at` and must end with `data`. Raises `Malformed`."""
    session_id, session_epoch = 0, -1
    if version >= _SESSION_SINCE:
        at, fields = _take(_HEAD_V7, data, at)
        replica_id, wait_ms_max, bytes_min, bytes_max, isolation_level, session_id, session_epoch, topics = fields
    else:
        at, fields = _take(_HEAD_V4, data, at)
        replica_id, wait_ms_max, bytes_min, bytes_max, isolation_level, topics = fields
    check_count(topics, _TOPIC_BYTES_MIN, len(data) - at)
    layout = _part_layout(version)
    parts: list[Part] = []
    for _ in range(topics):
        at = _read_topic(data, at, layout, parts)
    if version >= _SESSION_SINCE:
        at = _skip_forgotten(data, at)
    if version >= _RACK_SINCE:
        _, at = _string_at(data, at)
    if at != len(data):
        raise Malformed(MalformedReason.TRAILING_BYTES, f"{len(data) - at} bytes after Fetch")
    return FetchRequest(
        version,
        correlation_id,
        replica_id,
        wait_ms_max,
        bytes_min,
        bytes_max,
        isolation_level,
        session_id,
        session_epoch,
        parts,
    )


def _part_layout(version: int) -> Struct:
    return _PART_V9 if version >= _EPOCH_SINCE else _PART_V5 if version >= _LOG_START_SINCE else _PART_V4


def _read_topic(data: bytes, at: int, layout: Struct, parts: list[Part]) -> int:
    """Add a topic's parts; where the next one begins."""
    topic, at = _string_at(data, at)
    at, count = _count_at(data, at, layout.size)
    end = at + count * layout.size
    check_named(len(parts) + count)
    parts += [_part(topic, layout, fields) for fields in layout.iter_unpack(data[at:end])]
    return end


def _part(topic: str, layout: Struct, fields: tuple[int, ...]) -> Part:
    if layout is _PART_V9:
        number, leader_epoch, offset, _, bytes_max = fields
        return Part(topic, number, leader_epoch, offset, bytes_max)
    return Part(topic, fields[0], -1, fields[1], fields[-1])


def _skip_forgotten(data: bytes, at: int) -> int:
    at, topics = _count_at(data, at, _TOPIC_BYTES_MIN)
    for _ in range(topics):
        _, at = _string_at(data, at)
        at, partitions = _count_at(data, at, _COUNT.size)
        at += _COUNT.size * partitions
    return at


# Size, correlation id, throttle; error and session id (7+); count of topics.
_ANSWER_V4: Final = Struct(">iiii")
_ANSWER_V7: Final = Struct(">iiihii")
# Partition, error, high watermark, last stable offset; log start (5+); aborted transactions; replica (11+); size.
_FOUND_V4: Final = Struct(">ihqqii")
_FOUND_V5: Final = Struct(">ihqqqii")
_FOUND_V11: Final = Struct(">ihqqqiii")
_NO_ABORTED: Final = 0
_NO_PREFERRED_REPLICA: Final = -1


def answer(request: FetchRequest, found: Sequence[Found]) -> list[Records]:
    """The answer's frame, as pieces to be written one after another; `found` in the order of the request's parts.

    The records are pieces as they were given, all others are bytes.
    """
    version, parts = request.version, request.parts
    out: list[Records] = []
    pending: list[bytes] = []
    topics, at = 0, 0
    while at < len(parts):
        topic, first = parts[at].topic, at
        while at < len(parts) and parts[at].topic == topic:
            at += 1
        topics += 1
        pending += (_string(topic), _COUNT.pack(at - first))
        for number in range(first, at):
            pending.append(_found(version, parts[number].partition, found[number]))
            records = found[number].records
            if len(records):
                out += (b"".join(pending), records)
                pending = []
    out.append(b"".join(pending))
    size = sum(map(len, out))
    if version >= _SESSION_SINCE:
        head = _ANSWER_V7.pack(_ANSWER_V7.size - 4 + size, request.correlation_id, 0, 0, 0, topics)
    else:
        head = _ANSWER_V4.pack(_ANSWER_V4.size - 4 + size, request.correlation_id, 0, topics)
    return [head, *out]


def _found(version: int, partition: int, found: Found) -> bytes:
    """Everything of a partition but its records. The last stable offset is the high watermark: no transactions."""
    error, high, log_start, records = found
    size = len(records)
    if version >= _RACK_SINCE:
        return _FOUND_V11.pack(partition, error, high, high, log_start, _NO_ABORTED, _NO_PREFERRED_REPLICA, size)
    if version >= _LOG_START_SINCE:
        return _FOUND_V5.pack(partition, error, high, high, log_start, _NO_ABORTED, size)
    return _FOUND_V4.pack(partition, error, high, high, _NO_ABORTED, size)


def refusal(request: FetchRequest, error: int) -> bytes:
    """An answer that refuses the whole request; only versions with sessions have a place for it."""
    assert request.version >= _SESSION_SINCE
    return _ANSWER_V7.pack(_ANSWER_V7.size - 4, request.correlation_id, 0, error, 0, 0)


def _take(layout: Struct, data: bytes, at: int) -> tuple[int, tuple[int, ...]]:
    if at + layout.size > len(data):
        raise truncated(layout.size, len(data) - at)
    return at + layout.size, layout.unpack_from(data, at)


def _count_at(data: bytes, at: int, bytes_min: int) -> tuple[int, int]:
    """A count of elements, each of which takes at least `bytes_min`, and the position behind it."""
    at, (count,) = _take(_COUNT, data, at)
    check_count(count, bytes_min, len(data) - at)
    return at, count


def _string_at(data: bytes, at: int) -> tuple[str, int]:
    at, (size,) = _take(_LENGTH, data, at)
    if size < 0:
        raise Malformed(MalformedReason.NULL, "string")
    end = at + size
    if end > len(data):
        raise truncated(size, len(data) - at)
    return text(data[at:end]), end


def _string(value: str) -> bytes:
    raw = value.encode()
    return _LENGTH.pack(len(raw)) + raw
