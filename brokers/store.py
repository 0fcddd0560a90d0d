"""The partitions that this broker holds: one folder and one log each, and who waits for the next message.

Both listeners reach the logs through here, so that they see the same topics, offsets and bounds. Everything runs on the
event loop's thread; nothing here waits.

A topic that is made anew under an old name begins empty: which life of the name a folder belongs to stands in it. Where
the topic changed before this broker's eyes, the former life's messages are deleted with it; where that happened while
the broker was away, they are set aside, for nobody told it that they are not wanted.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Final

from brokers.log.config import FsyncPolicy, LogConfig
from brokers.log.errors import LogDiskFailed, LogError
from brokers.log.files import OS_FILES, read_file, replace_file
from brokers.log.flush import GroupCommit
from brokers.log.log import Log
from brokers.log.segment import OpenSegments
from brokers.notices import Notices
from coordinators.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from brokers.log.errors import SequenceError
    from brokers.log.log import Batch
    from brokers.log.stretch import Stretch
    from brokers.wire.rows import Row
    from coordinators.model import ClusterView, Topic

TOPICS_FOLDER: Final = "topics"
FORMER_FOLDER: Final = "former-topics"
LIFE_FILE: Final = "life"
_EPOCH_NS: Final = time.time_ns() - time.monotonic_ns()


class NotLeader(Exception):
    """Another broker leads the partition, or nobody does. Definite; the client asks anew who leads."""

    definite = True


class HeldPartition:
    """A partition's log, and the callbacks of those who wait for data behind its end.

    The object stays the same as long as the partition is held, so a connection may keep it; `deleted` says that it is
    over. `waiters` are called after each append, in the same turn of the event loop.
    """

    __slots__ = ("_commit", "_fsync_always", "at", "deleted", "life", "log", "settings", "waiters")

    def __init__(self, at: TopicPartition, log: Log, topic: Topic, *, fsync_always: bool) -> None:
        self.at = at
        self.log = log
        self.life = topic.life
        self.settings = topic.settings
        self.waiters: set[Callable[[], None]] = set()
        self.deleted = False
        self._commit = GroupCommit(log)
        self._fsync_always = fsync_always

    @property
    def start_offset(self) -> int:
        return self.log.start_offset

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    def append(self, batches: Sequence[Batch], leader_epoch: int) -> list[int | SequenceError]:
        """Append batches that `check_produced` found good, in one write. See `Log.append`."""
        results = self.log.append(batches, leader_epoch)
        self._appended()
        return results

    def append_row(self, row: Row, leader_epoch: int) -> range:
        """Append batches that are alike, in one write. See `Log.append_row`."""
        offsets = self.log.append_row(row, leader_epoch)
        self._appended()
        return offsets

    def _appended(self) -> None:
        for wake in tuple(self.waiters):
            wake()

    def read(self, offset: int, bytes_max: int, records_max: int = 0) -> bytes:
        """Whole batches from `offset`; at most `records_max` records (0: no bound), and what the topic allows."""
        return self.log.read(offset, bytes_max, self._records_max(records_max))

    def lend(self, offset: int, bytes_max: int, records_max: int, read_bytes_max: int) -> bytes | Stretch:
        """The same, left in its file where it is more than `read_bytes_max`."""
        return self.log.lend(offset, bytes_max, self._records_max(records_max), read_bytes_max)

    def _records_max(self, asked: int) -> int | None:
        allowed = self.settings.fetch_records_max
        return (min(asked, allowed) if asked and allowed else asked or allowed) or None

    def durable(self, offset: int) -> Awaitable[None] | None:
        """What to wait for before what lies before `offset` may be acknowledged; None where that is nothing."""
        return self._commit.synced(offset) if self._fsync_always else None

    async def sync(self) -> None:
        """Bring everything to the disk, as `fsync: interval` does from time to time."""
        await self._commit.synced(self.log.end_offset)

    async def maintain(self, *, sync_sealed: bool) -> None:
        """Drop what retention no longer keeps; with `sync_sealed`, sync all but the segment that grows, so that a start
        after a crash has little to scan though nothing is ever synced on the way of a request."""
        flush = self.log.begin_flush(sealed_only=True) if sync_sealed else None
        if flush is not None:
            await asyncio.get_running_loop().run_in_executor(None, flush.run)
            self.log.end_flush(flush)
        self.log.retain(_now_ms())


class Store:
    """All partitions held here. `follow` makes it what a view of the cluster says that it should be.

    `newest` is where the newest view is: one that came just before a request is followed before that is answered.
    """

    def __init__(
        self,
        folder: Path,
        config: LogConfig,
        me: int,
        newest: Callable[[], ClusterView] | None = None,
        notices: Notices | None = None,
    ) -> None:
        self._folder, self._former = folder / TOPICS_FOLDER, folder / FORMER_FOLDER
        self._config = config
        self._me = me
        self._open_segments = OpenSegments()
        self._notices = notices or Notices()
        self._held: dict[tuple[str, int], HeldPartition] = {}
        self._newest = newest
        self._followed: ClusterView | None = None

    def partition(self, topic: str, number: int) -> HeldPartition | None:
        if self._newest is not None and (view := self._newest()) is not self._followed:
            try:
                self.follow(view)
            except LogDiskFailed:
                if (topic, number) not in self._held:
                    raise
        return self._held.get((topic, number))

    @property
    def partitions(self) -> list[HeldPartition]:
        return list(self._held.values())

    def follow(self, view: ClusterView) -> None:
        """Open what this broker is a replica of and does not hold yet; delete what no longer exists.

        A view in which this broker itself is not there deletes nothing: who is shut out of the cluster, or reads what
        is another's, does not know what exists. Raises `LogDiskFailed` where a log cannot even be read;
        partitions before it are open then.
        """
        wanted = {
            TopicPartition(topic.name, number): topic
            for topic in view.topics.values()
            for number, partition in enumerate(topic.partitions)
            if self._me in partition.replicas
        }
        if self._me in view.brokers:
            for held in self.partitions:
                if held.at not in wanted or held.life != wanted[held.at].life:
                    self._delete(held)
        self._followed = view
        for at, topic in wanted.items():
            if at not in self._held:
                self._held[at] = self._opened(at, topic)

    def _opened(self, at: TopicPartition, topic: Topic) -> HeldPartition:
        settings = topic.settings
        config = self._config
        if settings.retention_bytes is not None:
            config = replace(config, retention_bytes=settings.retention_bytes)
        if settings.retention_ms is not None:
            config = replace(config, retention_ms=settings.retention_ms)
        folder = self._folder / f"{at.topic}-{at.partition}"
        self._set_former_life_aside(folder, topic.life)
        log = Log.open(folder, config, now_ms=_now_ms(), open_segments=self._open_segments, notices=self._notices)
        with suppress(OSError):  # a disk that refuses changes: then it is tried again at the next start
            if read_file(OS_FILES, folder / LIFE_FILE) is None:
                replace_file(OS_FILES, folder / LIFE_FILE, topic.life.encode(), durable=config.durable)
        return HeldPartition(at, log, topic, fsync_always=config.fsync is FsyncPolicy.ALWAYS)

    def _set_former_life_aside(self, folder: Path, life: str) -> None:
        """Raises `LogDiskFailed`: rather no partition than one with another topic's messages."""
        try:
            found = read_file(OS_FILES, folder / LIFE_FILE)
            if found is not None and found != life.encode():
                OS_FILES.make_directory(self._former)
                places = (self._former / f"{folder.name}@{number}" for number in count(1))
                OS_FILES.rename(folder, next(place for place in places if not place.exists()))
        except OSError as error:
            raise LogDiskFailed(f"{folder} belongs to a former topic and cannot be set aside: {error}") from error

    def _delete(self, held: HeldPartition) -> None:
        del self._held[held.at]
        held.deleted = True
        for wake in tuple(held.waiters):
            wake()
        held.log.delete()

    async def maintain(self) -> None:
        """What has to be done now and then. A partition whose disk fails says so to its own clients."""
        for held in self.partitions:
            if not held.deleted:
                with suppress(LogError):
                    await held.maintain(sync_sealed=self._config.fsync is FsyncPolicy.NEVER)

    def close(self) -> None:
        """Close every log in order, so that the next start has nothing to recover."""
        for held in self._held.values():
            held.log.close()
        self._held.clear()


def _now_ms() -> int:
    """Milliseconds since 1970 on a clock that does not jump: nothing is to be deleted because somebody set the time."""
    return (_EPOCH_NS + time.monotonic_ns()) // 1_000_000
