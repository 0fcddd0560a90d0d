"""ListOffsets: the first offset, the next one, or the first at or after a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from brokers.wire.schema import Int8, Int16, Int32, Int64, Since, String

LATEST: Final = -1
EARLIEST: Final = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartition:
    partition_index: Int32
    current_leader_epoch: Annotated[Int32, Since(4)] = -1
    timestamp: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopic:
    name: String
    partitions: tuple[ListOffsetsPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsRequest:
    replica_id: Int32
    isolation_level: Annotated[Int8, Since(2)] = 0
    topics: tuple[ListOffsetsTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartitionResponse:
    partition_index: Int32
    error_code: Int16
    timestamp: Annotated[Int64, Since(1)] = -1
    offset: Annotated[Int64, Since(1)] = -1
    leader_epoch: Annotated[Int32, Since(4)] = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopicResponse:
    name: String
    partitions: tuple[ListOffsetsPartitionResponse, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsResponse:
    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    topics: tuple[ListOffsetsTopicResponse, ...]
