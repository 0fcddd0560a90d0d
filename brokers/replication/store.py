"""The partitions that this broker holds: one folder and one log each, and who waits for the next message.

Both listeners reach the logs through here, so that they see the same topics, offsets and bounds. Everything runs on the
event loop's thread, but for what waits for the disk to open, close or delete: that is done in threads of the store's
own, so that thousands of logs hold up neither requests nor heartbeats.

A topic that is made anew under an old name begins empty, in a folder of its own. Where the topic changed before this
broker's eyes, the former life's messages are deleted with it; where that happened while the broker was away, they stay
where they are, for nobody told it that they are not wanted, and nobody is served of them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from brokers.log.config import FsyncPolicy, LogConfig
from brokers.log.epochs import UNKNOWN_EPOCH
from brokers.log.errors import LogDiskFailed, LogError
from brokers.log.files import OS_FILES, Files, is_read_only
from brokers.log.flush import GroupCommit
from brokers.log.log import Log
from brokers.log.segment import OpenSegments
from brokers.notices import Notices
from brokers.replication.openings import AT_ONCE_MAX, Opening, Openings
from brokers.replication.partition_folders import PartitionFolders
from coordinators.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from pathlib import Path

    from brokers.log.errors import SequenceError
    from brokers.log.file_range import Stretch
    from brokers.log.log import Batch
    from brokers.wire.rows import Row
    from coordinators.model import ClusterView, Topic

OPENED_WITHIN_S: Final = 10.0
_NAMED_MAX: Final = 5
_LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")
_EPOCH_NS: Final = time.time_ns() - time.monotonic_ns()


class NotLeader(Exception):
    """Another broker leads the partition, or nobody does. Definite; the client asks anew who leads."""

    definite = True


class TooFewInSync(Exception):
    """Fewer replicas are in sync than the topic asks for before `acks=all`. Definite; clients try again."""

    definite = True


class HeldPartition:
    """A partition's log, and the callbacks of those who wait for data behind its end.

    The object stays the same as long as the partition is held, so a connection may keep it; `deleted` says that it is
    over. `waiters` are called after each append, in the same turn of the event loop.
    """

    __slots__ = ("_commit", "_fsync_always", "at", "deleted", "log", "settings", "waiters")

    def __init__(self, at: TopicPartition, log: Log, topic: Topic, *, fsync_always: bool) -> None:
        self.at = at
        self.log = log
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

    async def settled(self) -> None:
        """Return once the disk does nothing more for the partition; only then its log may be closed."""
        await self._commit.over()

    @property
    def synced(self) -> bool:
        return self.log.synced_offset == self.log.end_offset

    def abandon(self) -> None:
        """The partition is over: tell those who wait, and leave its log as it is."""
        self.deleted = True
        for wake in tuple(self.waiters):
            wake()
        self.log.abandon()

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
        data_dir: Path,
        config: LogConfig,
        me: int,
        newest: Callable[[], ClusterView] | None = None,
        files: Files = OS_FILES,
        notices: Notices | None = None,
    ) -> None:
        self._folders = PartitionFolders(data_dir, durable=config.durable, files=files)
        self._config = config
        self._me = me
        self._newest = newest
        self._files = files
        self._threads = ThreadPoolExecutor(AT_ONCE_MAX + 2, "store")  # the others delete, and remove what was deleted
        self._openings = Openings(self._threads, self._open, self._opened, self._not_opened)
        self._open_segments = OpenSegments()
        self._notices = notices or Notices()
        self._held: dict[tuple[str, int], HeldPartition] = {}
        self._topics: dict[str, Topic] = {}  # of this or another broker's partitions, as they were followed first
        self._followed: ClusterView | None = None
        self._deletions: dict[str, list[asyncio.Task[LogError | None]]] = {}
        self._removing = asyncio.Lock()
        self._started = False
        self._tasks: set[asyncio.Task[Any]] = set()

    # --- what is held -------------------------------------------------------------------------------------

    def partition(self, topic: str, number: int) -> HeldPartition | None:
        """None also where it is not open yet; see `opening`."""
        self._follow_newest()
        return self._held.get((topic, number))

    def opening(self, at: TopicPartition) -> Opening | None:
        """What keeps a partition that this broker is to hold from being served. What to wait for is `opened`."""
        self._follow_newest()
        return self._openings.get(at)

    async def opened(self, at: TopicPartition) -> None:
        """Have a log opened before those that nobody asks for; return when it is open, or not to be held here.

        Raises `LogError` where it cannot be opened, `NotLeader` where it takes longer than a client should wait.
        """
        opening = self.opening(at)
        if opening is None:
            return
        self._openings.hurry(at)
        try:
            async with asyncio.timeout(OPENED_WITHIN_S):
                await opening.over()
        except TimeoutError:
            raise NotLeader(f"{at.topic}-{at.partition} is still being opened") from None
        if opening.error is not None:
            raise opening.error

    @property
    def partitions(self) -> list[HeldPartition]:
        return list(self._held.values())

    # --- following ----------------------------------------------------------------------------------------

    def _follow_newest(self) -> None:
        if self._newest is not None and (view := self._newest()) is not self._followed:
            self.follow(view)

    def follow(self, view: ClusterView) -> None:
        """Begin to open what this broker is a replica of and does not hold yet, and to delete what no longer exists.

        A view in which this broker itself is not there deletes nothing: who is shut out of the cluster, or reads what
        is another's, does not know what exists. What could not be opened is tried again, as it is by `maintain`.
        """
        self._followed = view
        self._openings.begin_failed_again()
        if self._me in view.brokers:
            for topic in list(self._topics.values()):
                now = view.topics.get(topic.name)
                if now is None or now.life != topic.life:
                    self._drop(topic)
        for topic in view.topics.values():
            if topic.name not in self._topics:
                self._topics[topic.name] = topic
                for number, partition in enumerate(topic.partitions):
                    if self._me in partition.replicas:
                        self._openings.begin(TopicPartition(topic.name, number), topic)

    async def caught_up(self, topic: str | None = None) -> None:
        """Return when what was followed of a topic, or of all, has come to be here.

        Raises `LogError` where the disk refused some of it.
        """
        deletions = [self._deletions.get(topic, [])] if topic is not None else list(self._deletions.values())
        openings = [opening for opening in self._openings.all if topic in {None, opening.at.topic}]
        refused = [await asyncio.shield(deletion) for same_name in deletions for deletion in tuple(same_name)]
        for opening in openings:
            await opening.over()
            refused.append(opening.error)
        for error in refused:
            if error is not None:
                raise error

    async def start(self, view: ClusterView) -> None:
        """Open all that this broker is to hold, and go on with what an earlier process did not finish.

        Raises `LogError` where a log cannot be opened.
        """
        self._spawn(self._remove(self._folders.remove_deleted))
        self.follow(view)
        await self.caught_up()
        self._started = True
        strays = await self._in_thread(self._folders.not_of, dict(self._topics))
        if strays:
            named = ", ".join([str(folder) for folder in strays[:_NAMED_MAX]] + ["..."] * (len(strays) > _NAMED_MAX))
            _LOG.warning(
                "broker: here lie logs of topics that are deleted or made anew, or that a damaged journal has lost; "
                "they are not served, and yours to keep or to remove: %s",
                named,
            )

    # --- opening ------------------------------------------------------------------------------------------

    def _open(self, opening: Opening) -> Log:
        """In a thread."""
        topic, config = opening.topic, self._config
        if topic.settings.retention_bytes is not None:
            config = replace(config, retention_bytes=topic.settings.retention_bytes)
        if topic.settings.retention_ms is not None:
            config = replace(config, retention_ms=topic.settings.retention_ms)
        folder = self._folders.of(topic, opening.at.partition)
        try:
            self._folders.make(topic)
        except OSError as error:
            raise LogDiskFailed(f"cannot make {folder.parent}: {error}") from error
        partition = topic.partitions[opening.at.partition]
        epoch = partition.epoch if partition.leader == self._me else UNKNOWN_EPOCH
        return Log.open(folder, config, now_ms=_now_ms(), files=self._files, leader_epoch=epoch, notices=self._notices)

    def _opened(self, opening: Opening, log: Log) -> None:
        log.share(self._open_segments)
        always = self._config.fsync is FsyncPolicy.ALWAYS
        self._held[opening.at] = HeldPartition(opening.at, log, opening.topic, fsync_always=always)

    def _not_opened(self, error: LogError) -> None:
        if self._started:  # else the start ends with it
            _LOG.error("broker: a partition cannot be opened: %s", error)

    # --- deleting -----------------------------------------------------------------------------------------

    def _drop(self, topic: Topic) -> None:
        del self._topics[topic.name]
        in_threads = self._openings.drop(topic)
        for number in range(len(topic.partitions)):
            held = self._held.pop((topic.name, number), None)
            if held is not None:
                held.abandon()
        deletion = self._spawn(self._delete(topic, in_threads))
        under_way = self._deletions.setdefault(topic.name, [])
        under_way.append(deletion)
        deletion.add_done_callback(lambda _: self._forget(topic.name, deletion))

    def _forget(self, name: str, deletion: asyncio.Task[LogError | None]) -> None:
        self._deletions[name].remove(deletion)
        if not self._deletions[name]:
            del self._deletions[name]

    async def _delete(self, topic: Topic, in_threads: Sequence[Opening]) -> LogError | None:
        """Over when the topic's logs are no topic's any more; to remove them may take longer."""
        for opening in in_threads:
            await opening.over()
        try:
            apart = await self._in_thread(self._folders.set_apart, topic)
        except OSError as error:
            _LOG.error("broker: cannot delete the logs of topic %s: %s", topic.name, error)
            return LogDiskFailed(f"cannot delete the logs of topic {topic.name}: {error}")
        if apart is not None:
            self._spawn(self._remove(self._folders.remove, apart))
        return None

    async def _remove(self, remove: Callable[..., None], *arguments: Path) -> None:
        async with self._removing:
            try:
                await self._in_thread(remove, *arguments)
            except OSError as error:
                if not is_read_only(error):
                    _LOG.error("broker: cannot remove what was deleted, the next start tries again: %s", error)

    # --- now and then, and at the end ---------------------------------------------------------------------

    async def maintain(self) -> None:
        """What has to be done now and then. A partition whose disk fails says so to its own clients."""
        self._openings.begin_failed_again()
        for held in self.partitions:
            if not held.deleted:
                with suppress(LogError):
                    await held.maintain(sync_sealed=self._config.fsync is FsyncPolicy.NEVER)
            await asyncio.sleep(0)  # there may be thousands

    async def sync(self) -> None:
        """Bring everything to the disk. A partition whose disk fails refuses writes from then on and says why."""
        unsynced = [held.sync() for held in self.partitions if not held.synced]
        await asyncio.gather(*unsynced, return_exceptions=True)

    async def close(self) -> None:
        """Close every log in order, so that the next start has nothing to recover."""
        self._folders.stop()
        await self._openings.close()
        while self._tasks:
            await asyncio.wait(self._tasks)
        await asyncio.gather(*[self._close_logs() for _ in range(AT_ONCE_MAX)])
        self._threads.shutdown()

    async def _close_logs(self) -> None:
        while self._held:
            _, held = self._held.popitem()
            await held.settled()
            held.log.share(OpenSegments())
            await self._in_thread(held.log.close)

    async def _in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _now_ms() -> int:
    """Milliseconds since 1970 on a clock that does not jump: nothing is to be deleted because somebody set the time."""
    return (_EPOCH_NS + time.monotonic_ns()) // 1_000_000
