"""The settings of a log, with defaults that suit a broker on one machine, and the segments that they keep."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from coordinators.settings import whole, word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brokers.log.segment import Segment

Count = Annotated[int, whole(1, 2**63 - 1)]
Bound = Annotated[int | None, whole(1, 2**63 - 1)]


class FsyncPolicy(StrEnum):
    """When the data goes to the disk itself rather than to the operating system."""

    NEVER = "never"
    INTERVAL = "interval"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Settings of one log. None means no such bound."""

    segment_bytes: Count = 128 * 1024 * 1024
    index_interval_bytes: Count = 4096
    retention_bytes: Bound = None
    retention_ms: Bound = None
    fsync: Annotated[FsyncPolicy, word(*FsyncPolicy)] = FsyncPolicy.NEVER
    fsync_interval_ms: Count = 1000
    producers_max: Count = 10_000
    producer_unused_ms_max: Count = 24 * 60 * 60 * 1000
    read_positions_max: Count = 64

    @property
    def durable(self) -> bool:
        """Whether the log's small files are synced as well: all but `never`."""
        return self.fsync is not FsyncPolicy.NEVER


def count_over(segments: Sequence[Segment], config: LogConfig, now_ms: int) -> int:
    """How many of the oldest segments have to go; never the growing one, and all before one that goes."""
    size_bytes = sum(segment.size for segment in segments)
    for count, oldest in enumerate(segments[:-1]):
        size_bytes -= oldest.size
        by_bytes = config.retention_bytes is not None and size_bytes >= config.retention_bytes
        by_time = config.retention_ms is not None and 0 <= oldest.timestamp_max < now_ms - config.retention_ms
        if not by_bytes and not by_time:
            return count
    return len(segments) - 1
