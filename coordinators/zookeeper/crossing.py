"""Between kazoo's thread and the event loop: what is told, and the socket that kazoo reads."""

from __future__ import annotations

import select
import socket
from collections import deque
from contextlib import suppress
from math import inf
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from threading import Lock

READ_BYTES: Final = 64 * 1024
WRITE_WITHIN_S: Final = 5.0
_LENGTH: Final = Struct(">i")
_GREETING: Final = Struct(">iii")  # length, protocol version, session timeout: what a server says first


class Inbox:
    """What kazoo says, in its thread or on the loop, told on the event loop in order; one wake-up for all of it."""

    def __init__(self) -> None:
        self._entries: deque[tuple[Callable[[Any, Any], None], object, object]] = deque()
        self._woken = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def put(self, tell: Callable[[Any, Any], None], first: object, second: object) -> None:
        self._entries.append((tell, first, second))
        if not self._woken and self._loop is not None and not self._loop.is_closed():
            self._woken = True
            self._loop.call_soon_threadsafe(self.drain)

    def hold(self) -> None:
        """On the event loop, which will `drain` in this turn: no wake-up is needed."""
        self._woken = True

    def drain(self) -> None:
        self._woken = False  # before the first is taken, so that what comes later is never left lying
        while self._entries:
            tell, first, second = self._entries.popleft()
            tell(first, second)


class Reply:
    """What kazoo takes for its result object: it only passes on what it is told."""

    __slots__ = ("_failed", "_inbox", "_link", "_outcome", "_set", "future", "sent_at")

    def __init__(
        self,
        inbox: Inbox,
        answered: Callable[[Reply, object], None],
        failed: Callable[[Reply, Exception], None],
    ) -> None:
        self._inbox = inbox
        self._set = answered
        self._failed = failed
        # Set by `Session` before its next turn of the event loop, which is before anything is told to it.
        self.sent_at = -inf
        self.future: asyncio.Future[Any]
        self._link: Callable[[Reply], object] | None = None
        self._outcome: object = None

    def set(self, value: object = None) -> None:
        self._inbox.put(self._set, self, value)

    def set_exception(self, error: Exception) -> None:
        self._inbox.put(self._failed, self, error)

    # kazoo makes some requests (sync) of two results, of which the first is linked to the second. It links them in the
    # call that sends the request, on the event loop, so before the inbox can tell the first.

    def rawlink(self, callback: Callable[[Reply], object]) -> None:
        self._link = callback

    def passed_on(self, outcome: object) -> bool:
        """On the event loop: tell the linked result, if there is one."""
        if self._link is None:
            return False
        self._outcome = outcome
        self._link(self)
        return True

    def get(self) -> object:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


class Wire:
    """kazoo's socket, read ahead. `pending` is what kazoo asks of sockets that read ahead, as those of TLS do.

    `lent` and `closed` change under `turn`, under which the event loop also sends and reads (handler.py).
    """

    def __init__(self, connection: socket.socket, turn: Lock) -> None:
        self._socket = connection
        self._turn = turn
        self._ahead = b""
        self._at = 0  # what is before it has been taken
        self._greeting = b""
        self.granted_ms = 0
        self.unsent = b""
        self.lent = self.closed = self._spoilt = False
        self.fileno = connection.fileno
        self.setblocking = connection.setblocking

    # --- read ---------------------------------------------------------------------------------------------

    def pending(self) -> int:
        return len(self._ahead) - self._at

    def whole(self) -> bool:
        """Whether all of the next answer is here."""
        if self.pending() < _LENGTH.size:
            return False
        return bool(self.pending() - _LENGTH.size >= _LENGTH.unpack_from(self._ahead, self._at)[0])

    def next_xid(self) -> int:
        """Of the next answer, all of which is here: which request it is to; below 0 for what answers none."""
        return int(_LENGTH.unpack_from(self._ahead, self._at + _LENGTH.size)[0])

    def take(self) -> bytes:
        """The next answer, all of which is here, without its length."""
        begin = self._at + _LENGTH.size
        self._at = begin + _LENGTH.unpack_from(self._ahead, self._at)[0]
        return self._ahead[begin : self._at]

    def recv(self, size: int) -> bytes:
        if self._at == len(self._ahead):
            self.read_ahead()
        taken = self._ahead[self._at : self._at + size]
        self._at += len(taken)
        return taken

    def read_ahead(self) -> bool:
        """Read what has come, if anything; False where the connection has ended. Raises `OSError`."""
        try:
            came = b"" if self._spoilt else self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return True
        self._ahead, self._at = self._ahead[self._at :] + came, 0
        if not self.granted_ms:
            self._greet(came)
        return bool(came)

    def _greet(self, came: bytes) -> None:
        self._greeting += came
        if len(self._greeting) >= _GREETING.size:
            self.granted_ms = _GREETING.unpack_from(self._greeting)[2]

    # --- write --------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> int:
        """Take all of it and wait for nothing: what does not go now is `unsent`, for `flush`."""
        unsent = self.unsent + data if self.unsent else data
        with suppress(BlockingIOError):
            unsent = unsent[self._socket.send(unsent) :]
        self.unsent = unsent
        return len(data)

    def flush(self) -> None:
        """Wait until nothing is unsent. Raises `OSError`."""
        while self.unsent:
            poll = select.poll()
            poll.register(self._socket, select.POLLOUT)
            if not poll.poll(WRITE_WITHIN_S * 1000):
                raise TimeoutError("ZooKeeper reads no more")
            self.unsent = self.unsent[self._socket.send(self.unsent) :]

    # --- end ----------------------------------------------------------------------------------------------

    def give_up(self) -> None:
        """Have nothing more read of what came, and the connection end."""
        self._spoilt = True
        self._ahead, self._at = b"", 0
        self.shutdown()

    def shutdown(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:  # it is closed already
            return

    def close(self) -> None:
        with self._turn:
            self.closed = True
            self.shutdown()  # so that whoever has the other descriptor hears of it
            self._socket.close()
