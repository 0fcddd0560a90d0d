"""What can be set about a log, with defaults that suit a broker on one machine."""

from dataclasses import dataclass
from enum import StrEnum


class FsyncPolicy(StrEnum):
    """When the data goes to the disk itself rather than to the operating system."""

    NEVER = "never"
    INTERVAL = "interval"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Settings of one log. None means no such bound."""

    segment_bytes: int = 128 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_bytes: int | None = None
    retention_ms: int | None = None
    fsync: FsyncPolicy = FsyncPolicy.NEVER
    fsync_interval_ms: int = 1000
    producers_max: int = 10_000
    producer_unused_ms_max: int = 24 * 60 * 60 * 1000
    read_positions_max: int = 64

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        for name in ("segment_bytes", "index_interval_bytes", "fsync_interval_ms", "producers_max"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, at least 1 is needed")

    @property
    def durable(self) -> bool:
        """Whether the log's small files are synced as well: all but `never`."""
        return self.fsync is not FsyncPolicy.NEVER
