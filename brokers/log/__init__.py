"""The log of a partition: segment files of record batches, read and written through one seam to the disk."""

from brokers.log.config import FsyncPolicy, LogConfig
from brokers.log.errors import (
    LeaderEpochStale,
    LogChangeUncertain,
    LogClosed,
    LogDiskFailed,
    LogError,
    LogNotSynced,
    LogOffsetOutOfRange,
    LogRefusesForNow,
    LogRefusesWrites,
    LogSyncFailed,
    LogUnreadable,
    ProducerFenced,
    SequenceError,
    SequenceOutOfOrder,
)
from brokers.log.flush import Flush, GroupCommit
from brokers.log.log import Batch, Log
from brokers.log.recovery.report import Damage, RecoveryReport
from brokers.log.segment import OpenSegments
from brokers.notices import Notices

__all__ = [
    "Batch",
    "Damage",
    "Flush",
    "FsyncPolicy",
    "GroupCommit",
    "LeaderEpochStale",
    "Log",
    "LogChangeUncertain",
    "LogClosed",
    "LogConfig",
    "LogDiskFailed",
    "LogError",
    "LogNotSynced",
    "LogOffsetOutOfRange",
    "LogRefusesForNow",
    "LogRefusesWrites",
    "LogSyncFailed",
    "LogUnreadable",
    "Notices",
    "OpenSegments",
    "ProducerFenced",
    "RecoveryReport",
    "SequenceError",
    "SequenceOutOfOrder",
]
