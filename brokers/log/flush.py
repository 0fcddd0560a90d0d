"""Bringing appended data to the disk itself without holding up the event loop.

The log's state is touched on the loop's thread only. A flush is three steps: `Syncing.begin` collects what is not
synced (second handles to the files, so that the log may roll, cut or delete in between), `Flush.run` does the blocking
calls in any thread, `Syncing.end` notes the outcome. `GroupCommit` strings them together for many waiters.
"""

import asyncio
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from brokers.log.errors import LogDiskFailed, LogNotSynced, LogOffsetOutOfRange, LogSyncFailed
from brokers.log.files import Files
from brokers.log.recovery.synced import SyncedRecord
from brokers.log.segment import OpenSegments, Segment

if TYPE_CHECKING:
    from brokers.log.log import Log


@dataclass(slots=True)
class Flush:
    """One sync of one log, to be run once. `error` holds the disk's answer if it was not yes.

    It opens nothing, so that whatever fails in it failed on the disk.
    """

    files: Files
    handles: list[int]
    segments: list[Segment]
    directory: int | None
    end_offset: int
    generation: int
    error: OSError | None = field(default=None)

    def run(self) -> None:
        """Sync the files, then the directory if a file is new in it. Blocks; touches nothing but the disk."""
        try:
            for handle in self.handles:
                self.files.fdatasync(handle)
            if self.directory is not None:
                self.files.fsync(self.directory)
        except OSError as error:
            self.error = error
        finally:
            for handle in [*self.handles, *([] if self.directory is None else [self.directory])]:
                self.files.close(handle)


def flush_handles(
    files: Files, segments: Iterable[Segment], open_segments: OpenSegments, synced: SyncedRecord, directory: Path | None
) -> tuple[list[int], int | None]:
    """Everything that a flush needs: second handles of the segments (closed ones are opened) and the directory's.

    LogNotSynced, and none, if one cannot be had.
    """
    handles: list[int] = []
    try:
        synced.open()
        for segment in segments:
            if segment.handle < 0:
                open_segments.use(segment)
            handles.append(files.duplicate(segment.handle))
        return handles, None if directory is None else files.open_directory(directory)
    except (OSError, LogDiskFailed) as error:
        for handle in handles:
            files.close(handle)
        raise LogNotSynced(f"cannot sync: {error}") from error


class GroupCommit:
    """Syncs one log for everybody who waits: all appends that came while a sync was running share the next one."""

    def __init__(self, log: "Log", executor: Executor | None = None) -> None:
        self._log = log
        self._executor = executor
        self._running: asyncio.Future[LogNotSynced | None] | None = None

    async def synced(self, offset: int) -> None:
        """Return once everything before `offset` is on the disk.

        LogSyncFailed when the disk failed; LogNotSynced when there were no handles for it, or no room to note it;
        LogOffsetOutOfRange when the log was cut in between.
        """
        while self._log.syncing.synced_offset < offset:
            if offset > self._log.end_offset:
                raise LogOffsetOutOfRange(offset, self._log.start_offset, self._log.end_offset)
            if self._running is None:
                self._running = self._begin()
            refused = await asyncio.shield(self._running)
            if refused is not None:
                raise refused

    async def over(self) -> None:
        """Return once no sync is under way, though nobody may wait for it any more."""
        while self._running is not None:
            await asyncio.wait([self._running])

    def _begin(self) -> "asyncio.Future[LogNotSynced | None]":
        flush = self._log.syncing.begin()
        assert flush is not None, "something is not synced"
        return asyncio.ensure_future(self._run(flush))

    async def _run(self, flush: Flush) -> LogNotSynced | None:
        """Over only when its outcome is noted: a caller that found an ended sync would wait for it without end. What
        the log does not remember is the answer, for those who wait now."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._executor, flush.run)
        finally:
            self._running = None
        try:
            self._log.syncing.end(flush)
        except LogNotSynced as refused:
            return refused
        except LogSyncFailed:
            return None  # the log remembers it and tells each waiter at its next attempt
        return None
