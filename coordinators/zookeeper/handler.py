"""What kazoo is given to work with: a handler, by the interface that it documents (`kazoo.interfaces.IHandler`).

kazoo's own thread connects, sends, reads and pings. What it has to say (an answer, a watch that fired, a connection
that came or went) is put into one inbox in the order in which ZooKeeper sent it, and taken out on the event loop, a
whole burst at a time. Nothing in kazoo's thread ever waits for the loop.
"""

from __future__ import annotations

import logging
import select
import socket
import struct
import time
from collections import deque
from functools import partial
from math import inf
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Final

from kazoo.exceptions import KazooException
from kazoo.handlers.threading import AsyncResult, SequentialThreadingHandler

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence
    from threading import Thread

    from coordinators.zookeeper.client import Request

_LOG: Final = logging.getLogger(__name__)
_GREETING: Final = struct.Struct(">iii")  # length, protocol version, session timeout: what a server says first
# What kazoo raises, and its thread ends by, on an answer that is damaged, or to no request, or of an unknown error.
_UNREADABLE: Final = (struct.error, ValueError, LookupError, TypeError, AttributeError, RuntimeError, KazooException)


class Inbox:
    """What is said in another thread, told on the event loop in order; one wake-up for all of it."""

    def __init__(self) -> None:
        self._entries: deque[Callable[[], None]] = deque()
        self._woken = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def put(self, tell: Callable[..., None], *what: object) -> None:
        self._entries.append(partial(tell, *what))
        if not self._woken and self._loop is not None and not self._loop.is_closed():
            self._woken = True
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._woken = False  # before the first is taken, so that what comes later is never left lying
        while self._entries:
            self._entries.popleft()()


class Answer(AsyncResult):  # type: ignore[misc] # kazoo has no types
    """kazoo's result, which says so when it is set. `request` is what it answers, for `Client` to know; some of kazoo's
    requests are made of two results, and the one inside answers none."""

    def __init__(self, handler: Handler) -> None:
        super().__init__(handler)
        self._say = handler.said
        self.request: Request | None = None

    def set(self, value: object = None) -> None:
        super().set(value)
        self._say(self)

    def set_exception(self, exception: Exception) -> None:
        super().set_exception(exception)
        self._say(self)


class Wire(socket.socket):
    """A connection that hears which session timeout the server grants, which kazoo keeps to itself. 0 before that."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(fileno=connection.detach())
        self._greeting = b""
        self.granted_ms = 0

    def recv(self, *arguments: int) -> bytes:
        came = super().recv(*arguments)
        if not self.granted_ms:
            self._greeting += came
            if len(self._greeting) >= _GREETING.size:
                self.granted_ms = _GREETING.unpack_from(self._greeting)[2]
        return came


class Handler(SequentialThreadingHandler):  # type: ignore[misc] # kazoo has no types
    """`answered` is told each result, and `broken` of a thread of kazoo's that ended by an error, both on the loop. A
    server that takes a connection and says nothing has `attempt_s`; kazoo would wait a whole session timeout."""

    def __init__(self, answered: Callable[[Answer], None], broken: Callable[[], None], *, attempt_s: float) -> None:
        super().__init__()
        self.inbox = Inbox()
        self.said = partial(self.inbox.put, answered)
        self._broken = broken
        self._attempt_s = attempt_s
        self._wire: Wire | None = None
        self._aborted = False
        self._processor_time = ProcessorTime()

    # --- what kazoo asks of a handler ---------------------------------------------------------------------

    def async_result(self) -> Answer:
        return Answer(self)

    def dispatch_callback(self, callback: Any) -> None:
        """In kazoo's thread, so that a watch comes before what is answered later. The callback goes to the inbox."""
        callback.func(*callback.args)

    def spawn(self, func: Callable[..., object], *args: Any, **kwargs: Any) -> Thread:
        thread: Thread = super().spawn(self._run, partial(func, *args, **kwargs))
        return thread

    def _run(self, work: Callable[[], object]) -> None:
        try:
            self._processor_time.count(work)
        except _UNREADABLE:
            _LOG.exception("what ZooKeeper sent cannot be read; the connection is given up")
            self.inbox.put(self._broken)

    def create_connection(self, *args: Any, **kwargs: Any) -> Wire:
        if self._aborted:
            raise ConnectionAbortedError
        kwargs["timeout"] = min(kwargs.get("timeout") or inf, self._attempt_s)
        self._wire = Wire(super().create_connection(*args, **kwargs))
        return self._wire

    def select(
        self, readers: Sequence[Any], writers: Sequence[Any], _: Sequence[Any] = (), timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """As `select.select`, of any descriptors. (kazoo's own makes an epoll object for each wait.)"""
        if any(isinstance(reader, Wire) and not reader.granted_ms for reader in readers):
            timeout = min(inf if timeout is None else timeout, self._attempt_s)
        poll = select.poll()
        for reader in readers:
            poll.register(reader, select.POLLIN)
        for writer in writers:
            poll.register(writer, select.POLLOUT)
        ready = {descriptor for descriptor, _ in poll.poll(None if timeout is None else max(0.0, timeout) * 1000)}
        return [r for r in readers if r.fileno() in ready], [w for w in writers if w.fileno() in ready], []

    # --- what kazoo does not tell -------------------------------------------------------------------------

    @property
    def threads_cpu_ns(self) -> int:
        """Processor time of all threads that kazoo has started."""
        return self._processor_time.used_ns()

    def granted_ms(self) -> int:
        """The session timeout that the server granted on the newest connection."""
        return 0 if self._wire is None else self._wire.granted_ms

    def abort(self) -> None:
        """Let kazoo find its connection broken, and make no other."""
        self._aborted = True
        if self._wire is not None:
            try:
                self._wire.shutdown(socket.SHUT_RDWR)
            except OSError:  # it is closed already
                return


class ProcessorTime:
    """Of threads that come and go: of those that run, by their own clocks, and of those that have ended."""

    def __init__(self) -> None:
        # The clock of a thread that has ended must not be read: each takes its own away under the lock.
        self._lock = Lock()
        self._clocks: dict[int, int] = {}
        self._ended_ns = 0

    def count(self, work: Callable[[], object]) -> None:
        """In a thread of its own: do the work."""
        me = get_ident()
        with self._lock:
            self._clocks[me] = time.pthread_getcpuclockid(me)
        try:
            work()
        finally:
            with self._lock:
                del self._clocks[me]
                self._ended_ns += time.thread_time_ns()

    def used_ns(self) -> int:
        with self._lock:
            return self._ended_ns + sum(map(time.clock_gettime_ns, self._clocks.values()))
