"""Logs of deleted topics: set apart at once, so that a topic of the same name can be made, and removed bit by bit.

All calls belong on the event loop's thread; what waits for the disk is done in threads.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, TypeVar

from brokers.log.errors import LogDiskFailed, LogError
from brokers.log.files import is_read_only

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from brokers.replication.openings import Opening
    from brokers.replication.partition_folders import PartitionFolders
    from coordinators.model import Topic

_LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")
Deletion = asyncio.Task[LogError | None]


class Deletions:
    def __init__(self, folders: PartitionFolders, threads: Executor) -> None:
        self._folders = folders
        self._threads = threads
        self._under_way: dict[str, list[Deletion]] = {}
        self._removing = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    def go_on(self) -> None:
        """With what an earlier process did not finish."""
        self._spawn(self._remove(self._folders.remove_deleted))

    def begin(self, topic: Topic, opening: Sequence[Opening]) -> None:
        """Delete a topic whose logs are closed, except those that threads are `opening` just now."""
        deletion = self._spawn(self._delete(topic, opening))
        self._under_way.setdefault(topic.name, []).append(deletion)
        deletion.add_done_callback(lambda _: self._forget(topic.name, deletion))

    def under_way(self, topic: str | None) -> list[Deletion]:
        """Those of topics of that name, or all; each gives the `LogError` by which it failed."""
        names = list(self._under_way) if topic is None else [topic]
        return [deletion for name in names for deletion in self._under_way.get(name, ())]

    async def close(self) -> None:
        """Return when nothing is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _forget(self, name: str, deletion: Deletion) -> None:
        self._under_way[name].remove(deletion)
        if not self._under_way[name]:
            del self._under_way[name]

    async def _delete(self, topic: Topic, in_threads: Sequence[Opening]) -> LogError | None:
        """Over when the topic's logs are no topic's any more; to remove them may take longer."""
        for opening in in_threads:
            await opening.over()
        try:
            apart = await asyncio.get_running_loop().run_in_executor(self._threads, self._folders.set_apart, topic)
        except OSError as error:
            _LOG.error("broker: cannot delete the logs of topic %s: %s", topic.name, error)
            return LogDiskFailed(f"cannot delete the logs of topic {topic.name}: {error}")
        if apart is not None:
            self._spawn(self._remove(self._folders.remove, apart))
        return None

    async def _remove(self, remove: Callable[..., None], *arguments: Path) -> None:
        async with self._removing:
            try:
                await asyncio.get_running_loop().run_in_executor(self._threads, remove, *arguments)
            except OSError as error:
                if not is_read_only(error):
                    _LOG.error("broker: cannot remove what was deleted, the next start tries again: %s", error)

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
