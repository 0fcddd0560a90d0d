"""Why the log refuses. `definite` says whether the operation certainly did not happen; if not, it may have."""

from typing import ClassVar


class LogError(Exception):
    """Root of all that the log raises on purpose."""

    definite: ClassVar[bool] = True


class LogOffsetOutOfRange(LogError):
    """The offset lies before the log's start or behind its end."""

    def __init__(self, offset: int, start_offset: int, end_offset: int) -> None:
        super().__init__(f"offset {offset} is outside {start_offset} to {end_offset}")
        self.offset = offset


class LogUnreadable(LogError):
    """Stored bytes are damaged: the offsets from `begin` up to but not including `end` cannot be served.

    Everything before and after is served as ever. A reader that wants to go on seeks to `end`; nothing skips silently.
    """

    def __init__(self, begin: int, end: int, where: str) -> None:
        super().__init__(f"offsets {begin} to {end - 1} are damaged on disk ({where}); reading goes on at {end}")
        self.begin = begin
        self.end = end
        self.where = where


class LogDiskFailed(LogError):
    """The disk refused to open, read, list or remove; what the log holds is as it was."""


class LogRefusesForNow(LogError):
    """Nothing of the call was appended, for lack of something that may come back: file handles, memory, space.

    The log is as it was, and the next append tries again.
    """


class LogRefusesWrites(LogError):
    """Nothing of the call was appended, and nothing will be until the log is opened again."""


class LogClosed(LogError):
    """The log was closed or deleted; nothing was read."""


class LogChangeUncertain(LogError):
    """An append could not be undone, or a truncation stopped half-way: a restart may find either state.

    Writes are refused from now on; reads go on up to the last good end.
    """

    definite = False


class LogNotSynced(LogError):
    """The sync could not be begun, for lack of file handles or memory, or not be noted, for lack of room; what was
    appended may or may not survive.

    The next sync tries again.
    """

    definite = False


class LogSyncFailed(LogError):
    """The sync failed, so what was appended since the last one may or may not survive. Never retried: writes are over.

    After a failed fsync Linux may mark the lost pages clean, so that a second fsync would succeed and prove nothing.
    """

    definite = False


class LeaderEpochStale(LogError):
    """The log holds batches of a later leader: whoever calls has lost its leadership. Nothing was appended."""


class SequenceError(LogError):
    """An idempotent producer's batch that does not follow its last one. `kafka_error` names the code for it."""

    kafka_error: ClassVar[str]


class SequenceOutOfOrder(SequenceError):
    """The batch leaves a gap, or repeats one that is no longer remembered."""

    kafka_error = "OUT_OF_ORDER_SEQUENCE_NUMBER"


class ProducerFenced(SequenceError):
    """A newer epoch of the same producer id has written."""

    kafka_error = "INVALID_PRODUCER_EPOCH"
