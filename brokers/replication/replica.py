"""A partition that this broker holds: its log, its role in it, and all who wait for something of it.

A leadership begins in `lead`, when the coordination layer answers that this broker leads. It ends in `revoke`, and
nowhere else: when a view or an answer says that another leads, or this broker at a higher epoch; when the log holds a
later epoch; when the topic is deleted. Whoever waits for data or for an acknowledgement hears of it at once. A lower
epoch than one that was heard is never believed.

A leadership's deadline is the coordination layer's: `check` looks at the clock, right before something is appended.
"""

from __future__ import annotations

import asyncio
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from brokers.log.errors import LeaderEpochStale
from brokers.log.flush import GroupCommit
from brokers.replication.acknowledgements import Acknowledgements
from brokers.replication.errors import LeadershipEnded, NotLeader, TooFewInSync
from coordinators.errors import Unavailable, UnknownTopic
from coordinators.leadership import enough_in_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from brokers.log.errors import SequenceError
    from brokers.log.file_range import Stretch
    from brokers.log.log import Batch, Log
    from brokers.replication.acknowledgements import Acknowledged
    from brokers.wire.rows import Row
    from coordinators.model import Partition, Topic, TopicPartition

_EPOCH_NS: Final = time.time_ns() - time.monotonic_ns()


class Role(StrEnum):
    """This broker's role in a partition, as it last heard."""

    LEADER = "leader"
    FOLLOWER = "follower"
    NONE = "none"


class Leadership:
    """One tenure of this broker as a partition's leader, at one epoch: what a request that it serves holds on to.

    `partition` is as it was answered last.
    """

    __slots__ = ("_serves", "over", "partition", "replica")

    def __init__(self, replica: Replica, partition: Partition, serves: Callable[[], bool]) -> None:
        self.replica = replica
        self.partition = partition
        self.over = False
        self._serves = serves

    @property
    def epoch(self) -> int:
        return self.partition.epoch

    def check(self) -> None:
        """Right before something is appended under it. Raises `UnknownTopic`, `NotLeader`, `Unavailable`."""
        if self.over:
            self.check_goes_on()
        if not self._serves():
            raise Unavailable(f"this broker may lead {self.replica.name} no more")

    def check_goes_on(self) -> None:
        """After a wait. Raises `UnknownTopic`, `NotLeader`."""
        if self.replica.deleted:
            raise UnknownTopic(f"{self.replica.name} was deleted")
        if self.over:
            raise NotLeader(f"{self.replica.name} is led by this broker at epoch {self.epoch} no more")

    def check_in_sync(self, default: int) -> None:
        """For `acks=all`; `default` is the broker's own bound. Raises `TooFewInSync`."""
        if not enough_in_sync(self.partition, self.replica.settings, default):
            raise TooFewInSync(f"{self.replica.name} has {len(self.partition.in_sync)} replicas in sync")


class Replica:
    """See the module. The object stays the same as long as the partition is held; `deleted` says that it is over.

    `waiters` are called after each append, in the same turn of the event loop, and when a leadership ends.
    """

    __slots__ = (
        "_commit", "_me", "acknowledgements", "at", "deleted", "leadership", "log", "partition", "settings", "waiters",
        "waits_for_the_disk",
    )  # fmt: skip

    def __init__(self, at: TopicPartition, log: Log, topic: Topic, me: int, *, fsync_always: bool) -> None:
        self.at = at
        self.log = log
        self.settings = topic.settings
        self.waiters: set[Callable[[], None]] = set()
        self.deleted = False
        self.leadership: Leadership | None = None
        self._me = me
        self.partition = topic.partitions[at.partition]
        self._commit = GroupCommit(log)
        self.waits_for_the_disk = fsync_always
        self.acknowledgements = Acknowledgements(log, self._commit)

    @property
    def name(self) -> str:
        return f"{self.at.topic}-{self.at.partition}"

    @property
    def epoch(self) -> int:
        """The highest leader epoch that was heard of."""
        return self.partition.epoch

    @property
    def role(self) -> Role:
        if self.partition.leader == self._me:
            return Role.LEADER
        return Role.FOLLOWER if self._me in self.partition.replicas else Role.NONE

    @property
    def start_offset(self) -> int:
        return self.log.start_offset

    @property
    def readable_end(self) -> int:
        """Behind the last offset that a client may read. Nothing is copied yet, so that is the log's end."""
        return self.log.end_offset

    # --- leading ------------------------------------------------------------------------------------------

    def lead(self, partition: Partition, serves: Callable[[], bool]) -> Leadership:
        """This broker's leadership, now that the coordination layer answers `partition`. Where the epoch is the same as
        before, no other broker has led in between. Raises `NotLeader`."""
        if partition is not self.partition:
            self.hear(partition)
        if self.leadership is None:
            if self.partition.leader != self._me:
                raise NotLeader(f"{self.name} is led by broker {self.partition.leader}; here its role is {self.role}")
            self.leadership = Leadership(self, self.partition, serves)
        return self.leadership

    def hear(self, partition: Partition) -> None:
        """Take a view's or an answer's word on it."""
        if partition.epoch < self.partition.epoch:
            return
        self.partition = partition
        leadership = self.leadership
        if leadership is None:
            return
        if (partition.leader, partition.epoch) == (self._me, leadership.epoch):
            leadership.partition = partition
        else:
            self.revoke()

    def revoke(self) -> None:
        """The leadership, if there is one, is over."""
        if self.leadership is not None:
            self.leadership.over = True
            self.leadership = None
            self.acknowledgements.end(LeadershipEnded(f"{self.name} passed on before it was acknowledged"))
        self._wake()

    def abandon(self) -> None:
        """The partition is over: tell those who wait, and leave its log as it is."""
        self.deleted = True
        self.revoke()
        self.log.abandon()

    def _wake(self) -> None:
        for wake in tuple(self.waiters):
            wake()

    # --- data ---------------------------------------------------------------------------------------------

    def append(self, batches: Sequence[Batch], leadership: Leadership) -> list[int | SequenceError]:
        """Append batches that `check_produced` found good, in one write. Raises as `Leadership.check`, `Log.append`."""
        leadership.check()
        try:
            results = self.log.append(batches, leadership.partition.epoch)
        except LeaderEpochStale as error:
            self.revoke()
            raise NotLeader(str(error)) from error
        if self.waiters:
            self._wake()
        return results

    def append_row(self, row: Row, leadership: Leadership) -> range:
        """Append batches that are alike, in one write. Raises as `append`."""
        leadership.check()
        try:
            offsets = self.log.append_row(row, leadership.partition.epoch)
        except LeaderEpochStale as error:
            self.revoke()
            raise NotLeader(str(error)) from error
        if self.waiters:
            self._wake()
        return offsets

    def acknowledged(self, timeout_ms: int | None = None) -> Acknowledged | None:
        """The wait before all appends until now may be acknowledged; None where there is none."""
        return self.acknowledgements.wait(self.log.end_offset, timeout_ms) if self.waits_for_the_disk else None

    def read(self, offset: int, bytes_max: int, records_max: int = 0) -> bytes:
        """Whole batches from `offset`; at most `records_max` records (0: no bound), and what the topic allows."""
        return self.log.reader.read(offset, bytes_max, self._records_max(records_max))

    def lend(self, offset: int, bytes_max: int, records_max: int, read_bytes_max: int) -> bytes | Stretch:
        """The same, left in its file where it is more than `read_bytes_max`."""
        return self.log.reader.lend(offset, bytes_max, self._records_max(records_max), read_bytes_max)

    def _records_max(self, asked: int) -> int | None:
        allowed = self.settings.fetch_records_max
        return (min(asked, allowed) if asked and allowed else asked or allowed) or None

    # --- the disk -----------------------------------------------------------------------------------------

    @property
    def synced(self) -> bool:
        return self.log.syncing.synced_offset == self.log.end_offset

    async def sync(self) -> None:
        """Bring everything to the disk, as `fsync: interval` does from time to time."""
        await self._commit.synced(self.log.end_offset)

    async def maintain(self, *, sync_sealed: bool) -> None:
        """Drop what retention no longer keeps; with `sync_sealed`, sync all but the segment that grows, so that a start
        after a crash has little to scan though nothing is ever synced on the way of a request."""
        flush = self.log.syncing.begin(sealed_only=True) if sync_sealed else None
        if flush is not None:
            await asyncio.get_running_loop().run_in_executor(None, flush.run)
            self.log.syncing.end(flush)
        self.log.retain(now_ms())


def now_ms() -> int:
    """Milliseconds since 1970 on a clock that does not jump: nothing is to be deleted because somebody set the time."""
    return (_EPOCH_NS + time.monotonic_ns()) // 1_000_000
