"""Callers that wait until the appends to one partition are safe: on the disk, as far as `fsync` asks for that.

Each partition has its own queue, so one whose disk is slow holds up nobody who waits for another. A wait ends when a
sync covers it, when the sync fails, when its time is up, or when the leadership ends under which it began.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from brokers.log.errors import LogError
from brokers.replication.errors import AcknowledgementLate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from brokers.log.flush import GroupCommit
    from brokers.log.log import Log

Acknowledged = asyncio.Future[None]
"""Done when it may be said that something is safe; else it raises why nobody knows."""


class Acknowledgements:
    """One partition's. `close` before the log is closed."""

    __slots__ = ("_commit", "_log", "_waiting", "_worker")

    def __init__(self, log: Log, commit: GroupCommit) -> None:
        self._log = log
        self._commit = commit
        self._waiting: dict[Acknowledged, int] = {}  # the offset before which all must be synced; it never falls
        self._worker: asyncio.Task[None] | None = None

    def wait(self, offset: int, timeout_ms: int | None) -> Acknowledged:
        """Raises, where it is awaited, `LogError`, `LeadershipEnded`, or `AcknowledgementLate` after `timeout_ms`."""
        loop = asyncio.get_running_loop()
        waiting: Acknowledged = loop.create_future()
        self._waiting[waiting] = offset
        if timeout_ms is not None:
            timer = loop.call_later(max(timeout_ms, 0) / 1000, self._late, waiting, timeout_ms)
            waiting.add_done_callback(lambda _: timer.cancel())
        if self._worker is None:
            self._worker = loop.create_task(self._work())
            self._worker.add_done_callback(self._worked)
        return waiting

    def end(self, error: Exception) -> None:
        """Tell all who wait that they wait in vain."""
        self._end(tuple(self._waiting), error)

    async def close(self) -> None:
        """Return once no sync is under way, though nobody may wait for it any more."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        await self._commit.over()

    async def _work(self) -> None:
        try:
            while self._waiting:
                try:
                    await self._commit.synced(next(iter(self._waiting.values())))
                except LogError as error:
                    self.end(error)
                safe = self._log.syncing.synced_offset
                self._end([waiting for waiting, offset in self._waiting.items() if offset <= safe], None)
        finally:
            self._worker = None

    def _worked(self, worker: asyncio.Task[None]) -> None:
        """A bug is told to all who wait: nobody may be left to wait for ever."""
        if not worker.cancelled() and (bug := worker.exception()) is not None:
            self._end(tuple(self._waiting), bug)

    def _late(self, waiting: Acknowledged, timeout_ms: int) -> None:
        self._end([waiting], AcknowledgementLate(f"it is not on the disk after {timeout_ms} ms"))

    def _end(self, ended: Iterable[Acknowledged], error: BaseException | None) -> None:
        for waiting in ended:
            self._waiting.pop(waiting, None)
            if waiting.done():
                continue
            if error is None:
                waiting.set_result(None)
            else:
                waiting.set_exception(error)
