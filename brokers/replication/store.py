"""The partitions that this broker holds: one folder, one log and one replica each.

Both listeners reach the logs through here, so that they see the same topics, offsets and bounds. Everything runs on the
event loop's thread, except waits for the disk to open, close or delete a log: these are in threads of the store's
own, so that thousands of logs hold up neither requests nor heartbeats.

A topic that is created again under an old name begins empty, in a folder of its own. Where the topic changed while this
broker ran, the former life's messages are deleted with it. Where it changed while the broker was away, they stay where
they are and are not served, because nobody told the broker to delete them.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from brokers.log.config import FsyncPolicy, LogConfig
from brokers.log.epochs import UNKNOWN_EPOCH
from brokers.log.errors import LogDiskFailed, LogError
from brokers.log.files import OS_FILES, Files
from brokers.log.log import Log
from brokers.log.segment import OpenSegments
from brokers.notices import Notices
from brokers.replication.deletions import Deletions
from brokers.replication.errors import NotLeader
from brokers.replication.openings import AT_ONCE_MAX, Opening, Openings
from brokers.replication.partition_folders import PartitionFolders
from brokers.replication.replica import Replica, now_ms
from coordinators.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from coordinators.model import ClusterView, Topic

OPENED_WITHIN_S: Final = 10.0
_NAMED_MAX: Final = 5
_LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")


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
        self._held: dict[tuple[str, int], Replica] = {}
        self._topics: dict[str, Topic] = {}  # of this or another broker's partitions, as they were followed first
        self._followed: ClusterView | None = None
        self._deletions = Deletions(self._folders, self._threads)
        self._started = False

    # --- what is held -------------------------------------------------------------------------------------

    def partition(self, topic: str, number: int) -> Replica | None:
        """None also where it is not open yet; see `opening`."""
        self._follow_newest()
        return self._held.get((topic, number))

    def opening(self, at: TopicPartition) -> Opening | None:
        """The obstacle to serving a partition that this broker is to hold. Wait for it by `opened`."""
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
                await opening.asked_for()
        except TimeoutError:
            raise NotLeader(f"{at.topic}-{at.partition} is still being opened") from None
        if opening.error is not None:
            raise opening.error

    @property
    def partitions(self) -> list[Replica]:
        return list(self._held.values())

    # --- following ----------------------------------------------------------------------------------------

    def _follow_newest(self) -> None:
        if self._newest is not None and (view := self._newest()) is not self._followed:
            self.follow(view)

    def follow(self, view: ClusterView) -> None:
        """Begin to open what this broker is a replica of and does not hold yet, and to delete what no longer exists.

        A view in which this broker itself is not there deletes nothing: a broker that is shut out, or reads what
        is another's, does not know what exists. A log that could not be opened is tried again, as it is by `maintain`.
        """
        before, self._followed = {} if self._followed is None else self._followed.topics, view
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
            elif topic is not before.get(topic.name):
                self._hear(topic)

    def _hear(self, topic: Topic) -> None:
        """Tell the replicas of a topic that changed, and who waits for one whose log is not open yet. A broker that is
        shut out may hold another life of it."""
        if topic.life != self._topics[topic.name].life:
            return
        for number, partition in enumerate(topic.partitions):
            at = TopicPartition(topic.name, number)
            replica = self._held.get(at)
            if replica is not None:
                replica.hear(partition)
            elif partition.leader != self._me and (opening := self._openings.get(at)) is not None:
                opening.pass_on(NotLeader(f"{topic.name}-{number} is led by broker {partition.leader}"))

    async def caught_up(self, topic: str | None = None) -> None:
        """Return when what was followed of a topic, or of all, has come to be here.

        Raises `LogError` where the disk refused some of it.
        """
        openings = [opening for opening in self._openings.all if topic in {None, opening.at.topic}]
        refused = [await asyncio.shield(deletion) for deletion in self._deletions.under_way(topic)]
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
        self._deletions.go_on()
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
        return Log.open(folder, config, now_ms=now_ms(), files=self._files, leader_epoch=epoch, notices=self._notices)

    def _opened(self, opening: Opening, log: Log) -> None:
        log.share(self._open_segments)
        always = self._config.fsync is FsyncPolicy.ALWAYS
        replica = self._held[opening.at] = Replica(opening.at, log, opening.topic, self._me, fsync_always=always)
        now = self._followed.topics.get(opening.at.topic) if self._followed is not None else None
        if now is not None and now.life == opening.topic.life:
            replica.hear(now.partitions[opening.at.partition])

    def _not_opened(self, error: LogError) -> None:
        if self._started:  # else the start ends with it
            _LOG.error("broker: a partition cannot be opened: %s", error)

    # --- deleting -----------------------------------------------------------------------------------------

    def _drop(self, topic: Topic) -> None:
        del self._topics[topic.name]
        in_threads = self._openings.drop(topic)
        for number in range(len(topic.partitions)):
            replica = self._held.pop((topic.name, number), None)
            if replica is not None:
                replica.abandon()
        self._deletions.begin(topic, in_threads)

    # --- now and then, and at the end ---------------------------------------------------------------------

    async def maintain(self) -> None:
        """The periodic work. A partition whose disk fails says so to its own clients."""
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
        await self._deletions.close()
        await asyncio.gather(*[self._close_logs() for _ in range(AT_ONCE_MAX)])
        self._threads.shutdown()

    async def _close_logs(self) -> None:
        while self._held:
            _, held = self._held.popitem()
            await held.acknowledgements.close()
            held.log.share(OpenSegments())
            await self._in_thread(held.log.close)

    async def _in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)
