"""kazoo's seam for threads and sockets, used to take its thread off the way of a request.

kazoo's thread connects, greets, pings, notices that a connection broke, and makes the next one. Between these it waits
for something to send or to read, and while it waits here, in `_rest`, the event loop speaks on the connection in its
place: a request leaves in the call that makes it, or, where others are unanswered, with those of the same turn of the
loop; an answer is read in the turn that its arrival wakes.
At each moment one of the two has the connection, by `_turn` and `_resting`, and the loop leaves to the thread whatever
it would have to wait for, or cannot do. Requests, answers, watches and the queues between them stay kazoo's.

Else each request wakes kazoo's thread, which sends it and waits, wakes again to read the answer, and then wakes the
loop (docs/decisions/0017).
"""

from __future__ import annotations

import logging
import os
import select
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from kazoo.exceptions import ConnectionLoss, KazooException
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.serialization import ReplyHeader

from coordinators.zookeeper.crossing import Reply, Wire
from coordinators.zookeeper.processor_time import ProcessorTime

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Collection, Sequence

    from kazoo.client import KazooClient

    from coordinators.zookeeper.crossing import Inbox

_LOG: Final = logging.getLogger(__name__)
_XID_MAX: Final = 2**31 - 1
_REQUEST: Final = struct.Struct(">iii")  # length, xid, type
_LENGTH_BYTES: Final = 4
LENT_AGAIN_AFTER_S: Final = 0.01
# What kazoo raises on an answer that is damaged, or to no request, or of an error that it does not know.
_UNREADABLE: Final = (struct.error, ValueError, LookupError, TypeError, AttributeError, RuntimeError, KazooException)
_NOW: Final = 0.0  # as long as kazoo may wait for the rest of an answer, all of which is there


class Handler(SequentialThreadingHandler):  # type: ignore[misc] # kazoo has no types
    """Answers go to the inbox with no thread in between; the socket is read in large pieces; one `poll`, and none where
    it is known what there is to do, takes the place of an epoll object made for each wait."""

    def __init__(
        self,
        inbox: Inbox,
        answered: Callable[[Reply, object], None],
        failed: Callable[[Reply, Exception], None],
        *,
        attempt_s: float,
    ) -> None:
        super().__init__()
        self._inbox = inbox
        self._answered = answered
        self._failed = failed
        self._attempt_s = attempt_s
        self._client: Any
        self._bell: Bell
        self._wire: Wire | None = None
        self._aborted = False
        self._turn = Lock()  # held for whatever is done on the connection while kazoo's thread rests, and to begin it
        self._resting = False
        self._loan: _Loan | None = None
        self._lends = True
        self._due = False
        self._sent_at = -inf
        self._lent_ns = 0
        self._processor_time = ProcessorTime()

    def serve(self, client: KazooClient) -> None:
        """Whose connection it is; told before `client` starts."""
        self._client = client

    # --- kazoo's seam -------------------------------------------------------------------------------------

    def spawn(self, work: Callable[..., object], *args: Any, **kwargs: Any) -> Any:
        return super().spawn(self._processor_time.counted(work), *args, **kwargs)

    def async_result(self) -> Reply:
        return Reply(self._inbox, self._answered, self._failed)

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)  # `Session._watched`, which does not block

    def create_connection(self, *args: Any, **kwargs: Any) -> Wire:
        if self._aborted:
            raise ConnectionAbortedError
        kwargs["timeout"] = min(kwargs["timeout"], self._attempt_s)
        self._wire = Wire(super().create_connection(*args, **kwargs), self._turn)
        return self._wire

    def create_socket_pair(self) -> tuple[Bell, Bell]:
        self._bell = Bell(self._rung)
        return self._bell, self._bell

    def select(
        self, readers: Sequence[Any], writers: Sequence[Any], _: Sequence[Any], timeout: float | None = None
    ) -> tuple[Collection[Any], Sequence[Any], Sequence[Any]]:
        if writers:
            writers[0].flush()
            return (), writers, ()
        if self._bell in readers:
            return self._rest(readers[0], timeout), (), ()
        if any(reader.pending() for reader in readers):
            return readers, (), ()
        if any(not reader.granted_ms for reader in readers):
            timeout = self._attempt_s  # kazoo would wait a whole session timeout for a server's first word
        return _ready(readers, timeout), (), ()

    def _rest(self, wire: Wire, timeout: float | None) -> Collection[Any]:
        """In kazoo's thread: wait until it has to do something itself."""
        ends = None if timeout is None else time.monotonic() + timeout
        while True:
            wire.flush()
            with self._turn:
                due = [reader for reader, it_is in ((wire, wire.whole()), (self._bell, self._client._queue)) if it_is]
                if due:
                    return due
                self._resting = True
                heeds = 0 if wire.lent else select.POLLIN
            try:
                woken_by = _ready((self._bell, wire), None if ends is None else ends - time.monotonic(), heeds)
            finally:
                with self._turn:
                    self._resting = False
            self._bell.hush()
            # What woke the thread the loop may have read meanwhile; and where it is too busy to read, the thread does.
            if wire in woken_by or not woken_by:
                readable = _ready((wire,), 0)
                if readable:
                    return readable
            if not woken_by and timeout is not None:
                ends = self._sent_at + timeout  # what was sent lately stands for a ping, as kazoo has it
                if ends <= time.monotonic():
                    return ()

    # --- on the event loop --------------------------------------------------------------------------------

    def lend(self, loop: asyncio.AbstractEventLoop) -> None:
        """A connection has come: the event loop speaks on it from now on while kazoo's thread rests."""
        wire = self._wire
        if self._loan is not None:
            if self._loan.wire is wire:
                return
            self._give_back()
        with self._turn:
            if wire is None or wire.closed or not self._lends:
                return
            # The loop's own: kazoo's thread closes its descriptor whenever it likes, and the number is soon another's.
            try:
                descriptor = os.dup(wire.fileno())
            except OSError:  # there is none to be had: it goes as kazoo has it
                return
            wire.lent = True
        self._loan = _Loan(wire, loop, descriptor)
        loop.add_reader(descriptor, self._readable, self._loan)
        self._bell.wake()

    def lend_no_more(self) -> None:
        """Leave everything to kazoo's thread, which is about to end."""
        self._lends = False
        self._give_back()

    def _give_back(self) -> None:
        if (loan := self._loan) is None:
            return
        self._loan = None
        with self._turn:
            loan.wire.lent = False
        loan.loop.remove_reader(loan.descriptor)
        os.close(loan.descriptor)
        self._bell.wake()

    def _rung(self) -> None:
        """kazoo has put a request into its queue. One that is alone leaves at once, others with those of their turn."""
        loan = self._loan
        if loan is None or not self._client._pending:
            self._send(loan)
        elif not self._due:
            self._due = True
            loan.loop.call_soon(self._send_due)

    def _send_due(self) -> None:
        self._due = False
        self._send(self._loan)

    def _send(self, loan: _Loan | None) -> None:
        with self._turn:
            if not self._resting:
                return  # kazoo's thread looks into the queue before it rests
            if loan is not None and not loan.wire.closed and self._sent(loan.wire):
                return
        self._bell.wake()

    def _sent(self, wire: Wire) -> bool:
        """Send what kazoo's queue holds, as its thread would. False where that has to go on with it."""
        start_ns = time.thread_time_ns()
        client, connection = self._client, self._client._connection
        parts: list[bytes] = []
        sent, xid = [], connection._xid
        for request, reply in client._queue:
            xid = xid % _XID_MAX + 1
            body = request.serialize()
            parts += (_REQUEST.pack(_REQUEST.size - _LENGTH_BYTES + len(body), xid, request.type), body)
            sent.append((request, reply, xid))
        try:
            wire.send(b"".join(parts))
        except OSError:  # which kazoo's thread will meet, too, with the requests where they were
            return False
        connection._xid = xid
        client._queue.clear()
        client._pending.extend(sent)
        self._sent_at = time.monotonic()
        self._lent_ns += time.thread_time_ns() - start_ns
        return not wire.unsent

    def _readable(self, loan: _Loan) -> None:
        start_ns = time.thread_time_ns()
        self._inbox.hold()
        try:
            with self._turn:
                rests = self._resting and not loan.wire.closed
                goes_on = rests and self._taken(loan.wire)
            self._lent_ns += time.thread_time_ns() - start_ns
            if not goes_on:
                self._give_back()
            if not rests:  # kazoo's thread is about, and reads for itself if it needs long
                loan.loop.call_later(LENT_AGAIN_AFTER_S, self.lend, loan.loop)
        finally:
            self._inbox.drain()

    def _taken(self, wire: Wire) -> bool:
        """Read what has come, as kazoo's thread would. False where that has to go on with it."""
        asked: Reply | None = None
        connection, pending = self._client._connection, self._client._pending
        try:
            if not wire.read_ahead():
                return False
            while wire.whole():
                if wire.next_xid() < 0:  # a ping's answer, or a watch that fired
                    connection._read_socket(_NOW)
                else:
                    asked = pending[0][1] if pending else None
                    answer = wire.take()
                    header, body_at = ReplyHeader.deserialize(answer, 0)
                    connection._read_response(header, answer, body_at)
        except OSError:  # which kazoo's thread will meet, too
            return False
        except _UNREADABLE:
            _LOG.exception("what ZooKeeper sent cannot be read; the connection is given up")
            wire.give_up()
            if asked is not None:
                asked.set_exception(ConnectionLoss())
            return False
        return True

    # --- what kazoo keeps to itself -----------------------------------------------------------------------

    @property
    def cpu_ns(self) -> int:
        """Processor time of kazoo's threads, and of the event loop in their place."""
        return self._processor_time.used_ns() + self._lent_ns

    def granted_ms(self) -> int:
        """The session timeout that the server granted on the present connection."""
        assert self._wire is not None, "asked when connected"
        return self._wire.granted_ms

    def abort(self) -> None:
        """Let kazoo's thread find its connection broken, and make no other."""
        self._aborted = True
        if self._wire is not None:
            self._wire.shutdown()


@dataclass(frozen=True, slots=True)
class _Loan:
    wire: Wire
    loop: asyncio.AbstractEventLoop
    descriptor: int


class Bell:
    """Both ends of the pair of sockets that kazoo rings itself with, once for each request that it is to send."""

    def __init__(self, rung: Callable[[], None]) -> None:
        self._far, self._near = socket.socketpair()
        self._far.setblocking(False)
        self._near.setblocking(False)
        self._rung = rung
        self.fileno = self._near.fileno

    def send(self, data: bytes) -> int:
        self._rung()
        return len(data)

    def recv(self, _: int) -> bytes:
        return b"\0"  # of what there is to send its queue tells

    def wake(self) -> None:
        """Have kazoo's thread look about if it rests."""
        with suppress(BlockingIOError):  # it has been told often enough
            self._far.send(b"\0")

    def hush(self) -> None:
        with suppress(BlockingIOError):
            self._near.recv(256)

    def close(self) -> None:
        self._far.close()
        self._near.close()


def _ready(readers: Sequence[Any], timeout: float | None, heeds: int = select.POLLIN) -> Collection[Any]:
    """Those that can be read, or have ended; of the last one what `heeds` says, or with 0 the end alone."""
    poll = select.poll()
    for reader in readers[:-1]:
        poll.register(reader, select.POLLIN)
    poll.register(readers[-1], heeds)
    ready = {descriptor for descriptor, _ in poll.poll(None if timeout is None else max(0, timeout) * 1000)}
    return [reader for reader in readers if reader.fileno() in ready]
