"""Logs on their way to being open: in threads, some at a time, those that a request waits for before the others.

To open a log takes the disk some milliseconds, and a scan after a crash takes long; a topic may have thousands of them.
The event loop goes on during that. All calls belong on its thread.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from brokers.log.errors import LogDiskFailed, LogError
from coordinators.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from brokers.log.log import Log
    from coordinators.model import Topic

AT_ONCE_MAX: Final = 4


class Opening:
    """A log that is to be opened, or is being opened, or could not be: then `error` says why.

    `before` is the error of the try before this one.
    """

    __slots__ = ("_over", "_requests", "at", "before", "error", "topic")

    def __init__(self, at: TopicPartition, topic: Topic, before: LogError | None = None) -> None:
        self.at = at
        self.topic = topic
        self.before = before
        self.error: LogError | None = None
        self._over = asyncio.Event()
        self._requests: set[asyncio.Future[None]] = set()

    async def over(self) -> None:
        """Wait until the log is open, could not be opened, or is not wanted any more."""
        await self._over.wait()

    async def asked_for(self) -> None:
        """The same for a request, which waits no longer than this broker leads. Raises what `pass_on` is given."""
        if not self._over.is_set():
            request: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._requests.add(request)
            try:
                await request
            finally:
                self._requests.discard(request)

    def pass_on(self, why: Exception) -> None:
        """Another leads: nobody need wait here. The log is opened all the same."""
        for request in self._requests:
            if not request.done():
                request.set_exception(why)

    def end(self, error: LogError | None = None) -> None:
        self.error = error
        self._over.set()
        for request in self._requests:
            if not request.done():
                request.set_result(None)


class Openings:
    """Partitions whose logs are not open yet; a failed one stays until it is dropped or begun again.

    `open_log` blocks, and raises `LogError`. The result of an opening that was not dropped is told: `opened`
    takes the log, `failed` is told of an error that is not that of the try before.
    """

    def __init__(
        self,
        threads: Executor,
        open_log: Callable[[Opening], Log],
        opened: Callable[[Opening, Log], None],
        failed: Callable[[LogError], None],
    ) -> None:
        self._threads = threads
        self._open_log = open_log
        self._opened = opened
        self._failed = failed
        self._known: dict[TopicPartition, Opening] = {}
        self._refused: dict[TopicPartition, Opening] = {}  # those that failed
        self._queue: dict[TopicPartition, Opening] = {}
        self._urgent: dict[TopicPartition, Opening] = {}  # those in the queue that somebody waits for
        self._in_threads: set[Opening] = set()
        self._workers: set[asyncio.Task[None]] = set()

    def get(self, at: TopicPartition) -> Opening | None:
        return self._known.get(at)

    @property
    def all(self) -> list[Opening]:
        return list(self._known.values())

    def begin_failed_again(self) -> None:
        for opening in list(self._refused.values()):
            self.begin(opening.at, opening.topic)

    def begin(self, at: TopicPartition, topic: Topic) -> None:
        former = self._refused.pop(at, None)
        self._known[at] = self._queue[at] = Opening(at, topic, None if former is None else former.error)
        if sum(not worker.done() for worker in self._workers) < AT_ONCE_MAX:  # who has just ended looks no more
            worker = asyncio.get_running_loop().create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    def hurry(self, at: TopicPartition) -> None:
        """Before those that nobody waits for."""
        if at in self._queue:
            self._urgent[at] = self._queue[at]

    def drop(self, topic: Topic) -> list[Opening]:
        """Open no more of a topic. The answer is what is in threads just now."""
        for opening in [self._known.get(TopicPartition(topic.name, n)) for n in range(len(topic.partitions))]:
            if opening is not None:
                self._drop(opening)
        return [opening for opening in self._in_threads if opening.topic is topic]

    def _drop(self, opening: Opening) -> None:
        del self._known[opening.at]
        self._refused.pop(opening.at, None)
        self._queue.pop(opening.at, None)
        self._urgent.pop(opening.at, None)
        if opening not in self._in_threads:
            opening.end(opening.error)

    async def _work(self) -> None:
        while self._queue:
            at = next(iter(self._urgent or self._queue))
            self._urgent.pop(at, None)
            opening = self._queue.pop(at)
            self._in_threads.add(opening)
            opened = asyncio.get_running_loop().run_in_executor(self._threads, self._open_log, opening)
            await asyncio.wait([opened])
            self._in_threads.discard(opening)
            failed = opened.exception()
            if failed is None:
                try:
                    self._take(opening, opened.result())
                finally:
                    opening.end()
            else:
                self._refuse(opening, _as_log_error(opening, failed))

    def _refuse(self, opening: Opening, error: LogError) -> None:
        if self._known.get(opening.at) is opening:
            self._refused[opening.at] = opening
            if str(error) != str(opening.before):
                self._failed(error)
        opening.end(error)

    def _take(self, opening: Opening, log: Log) -> None:
        if self._known.get(opening.at) is opening:
            del self._known[opening.at]
            self._opened(opening, log)
        else:
            log.abandon()

    async def close(self) -> None:
        """Open no more; return when no thread is at it."""
        for opening in self.all:
            self._drop(opening)
        await asyncio.gather(*self._workers)


def _as_log_error(opening: Opening, failed: BaseException) -> LogError:
    """An error that is not a `LogError` is a bug: the loop reports it, and nobody waits or takes the log for open."""
    if isinstance(failed, LogError):
        return failed
    asyncio.get_running_loop().call_exception_handler({"message": "opening a log failed", "exception": failed})
    return LogDiskFailed(f"cannot open {opening.at.topic}-{opening.at.partition}: {failed!r}")
