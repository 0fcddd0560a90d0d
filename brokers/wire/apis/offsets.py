"""OffsetCommit and OffsetFetch: where a consumer group stands.

Experiments commit after every batch, mostly of one partition: that is the hot path beside Produce and Fetch, and so has
a template by hand. The cost of commits to a broker is in `tables/resources` of a run with 32 B x 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Annotated, Final, NamedTuple

from brokers.wire.schema import Boolean, Int16, Int32, Int64, NullableString, Since, String

_KEY_AT: Final = 8  # behind API, version and correlation id
_CORRELATION: Final = Struct(">i")
_CORRELATION_AT: Final = 4
_EPOCH_SINCE: Final = 6
_THROTTLE_SINCE: Final = 3
# Partition, offset, leader epoch (6+), and how long the metadata is, which ends the request.
_PLACE_V2: Final = Struct(">iqh")
_PLACE_V6: Final = Struct(">iqih")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitPartition:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, Since(6)] = -1
    committed_metadata: NullableString


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitTopic:
    name: String
    partitions: tuple[OffsetCommitPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequest:
    """`retention_time_ms` is read and ignored: offsets live as long as their group."""

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[NullableString, Since(7)] = None
    retention_time_ms: Annotated[Int64, Since(2, until=4)] = -1
    topics: tuple[OffsetCommitTopic, ...]


def is_of_one_partition(request: OffsetCommitRequest) -> bool:
    return len(request.topics) == 1 and len(request.topics[0].partitions) == 1


class SingleCommit(NamedTuple):
    """The part of a commit that differs from the others."""

    correlation_id: int
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


class CommitTemplate:
    """The common part of a member's commits of one partition each (`request` is one of them), and their answers.

    All of a frame up to the partition is compared but the correlation id; what differs has no template.
    """

    __slots__ = ("_answer", "_head", "_key", "_middle", "_place", "_place_at", "request", "topic")

    def __init__(self, frame: bytes, version: int, request: OffsetCommitRequest) -> None:
        """`request` is what `frame` holds."""
        self.request = request
        self.topic = request.topics[0].name
        self._place = _PLACE_V6 if version >= _EPOCH_SINCE else _PLACE_V2
        metadata = request.topics[0].partitions[0].committed_metadata or ""
        self._place_at = len(frame) - len(metadata.encode()) - self._place.size
        self._head = frame[:_CORRELATION_AT]
        self._key = frame[_KEY_AT : self._place_at]
        name = self.topic.encode()
        throttle = bytes(4) if version >= _THROTTLE_SINCE else b""
        self._middle = throttle + Struct(f">ih{len(name)}si").pack(1, len(name), name, 1)
        self._answer = Struct(f">ii{len(self._middle)}sih")

    def read(self, frame: bytes) -> SingleCommit | None:
        """The commit in `frame`; None where it does not fit, or is nonsense that has to be refused."""
        at, place = self._place_at, self._place
        end = at + place.size
        if not (frame.startswith(self._head) and frame.startswith(self._key, _KEY_AT)) or len(frame) < end:
            return None
        partition, offset, *epoch, size = place.unpack_from(frame, at)
        if end + max(size, 0) != len(frame) or size < -1:
            return None
        try:
            metadata = frame[end:].decode() if size >= 0 else None
        except UnicodeDecodeError:
            return None
        correlation_id = _CORRELATION.unpack_from(frame, _CORRELATION_AT)[0]
        return SingleCommit(correlation_id, partition, offset, epoch[0] if epoch else -1, metadata)

    def answer(self, commit: SingleCommit, error: int) -> bytes:
        return self._answer.pack(self._answer.size - 4, commit.correlation_id, self._middle, commit.partition, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitPartitionResponse:
    partition_index: Int32
    error_code: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitTopicResponse:
    name: String
    partitions: tuple[OffsetCommitPartitionResponse, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponse:
    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    topics: tuple[OffsetCommitTopicResponse, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchTopic:
    name: String
    partition_indexes: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequest:
    """`topics` is None where all of the group's are asked for."""

    group_id: String
    topics: tuple[OffsetFetchTopic, ...] | None
    require_stable: Annotated[Boolean, Since(7)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchPartitionResponse:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, Since(5)] = -1
    metadata: NullableString
    error_code: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchTopicResponse:
    name: String
    partitions: tuple[OffsetFetchPartitionResponse, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponse:
    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    topics: tuple[OffsetFetchTopicResponse, ...]
    error_code: Annotated[Int16, Since(2)] = 0
