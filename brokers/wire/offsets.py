"""OffsetCommit and OffsetFetch: where a consumer group stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from brokers.wire.schema import Boolean, Int16, Int32, Int64, NullableString, Since, String


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
