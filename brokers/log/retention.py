"""Which segments the retention settings no longer keep. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brokers.log.config import LogConfig
    from brokers.log.segment import Segment


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
