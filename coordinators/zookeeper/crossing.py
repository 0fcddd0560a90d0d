"""Between kazoo's thread and the event loop: what is told, and the socket that kazoo reads."""

from __future__ import annotations

import select
import socket
from collections import deque
from math import inf
from struct import Struct
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

READ_BYTES: Final = 64 * 1024
WRITE_WITHIN_S: Final = 5.0
_GREETING: Final = Struct(">iii")  # length, protocol version, session timeout: what a server says first


class Inbox:
    """From kazoo's thread to the event loop, in order; one wake-up for all that has come by then."""

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
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
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
    """kazoo's socket, read ahead. `pending` is what kazoo asks of sockets that read ahead, as those of TLS do."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._ahead = b""
        self._greeting = b""
        self.granted_ms = 0
        self.fileno = connection.fileno
        self.setblocking = connection.setblocking

    def pending(self) -> int:
        return len(self._ahead)

    def recv(self, size: int) -> bytes:
        if not self._ahead:
            self._ahead = self._socket.recv(READ_BYTES)
            if not self.granted_ms:
                self._greet()
        taken, self._ahead = self._ahead[:size], self._ahead[size:]
        return taken

    def _greet(self) -> None:
        self._greeting += self._ahead
        if len(self._greeting) >= _GREETING.size:
            self.granted_ms = _GREETING.unpack_from(self._greeting)[2]

    def send(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            poll = select.poll()
            poll.register(self._socket, select.POLLOUT)
            if not poll.poll(WRITE_WITHIN_S * 1000):
                raise TimeoutError("ZooKeeper reads no more") from None
            return self._socket.send(data)

    def shutdown(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:  # it is closed already
            return

    def close(self) -> None:
        self._socket.close()


class Bell:
    """Both ends of the pair of sockets that kazoo rings itself with, once for each request that it is to send: the
    first ring is a byte on a real socket, those that come before it is answered are counted."""

    def __init__(self) -> None:
        self._far, self._near = socket.socketpair()
        self._lock = Lock()
        self.rung = 0
        self.fileno = self._near.fileno

    def send(self, data: bytes) -> int:
        with self._lock:
            self.rung += 1
            if self.rung == 1:
                self._far.send(data)
        return 1

    def recv(self, _: int) -> bytes:
        with self._lock:
            if self.rung == 1:
                self._near.recv(1)
            self.rung = max(0, self.rung - 1)
        return b"\0"

    def close(self) -> None:
        self._far.close()
        self._near.close()
