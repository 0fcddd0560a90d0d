"""Sending an answer whose records stay in their files: past the transport, from the page cache into the socket.

Large answers would otherwise be read into memory whole before their first byte leaves: that is a copy, memory for each
client that reads, and a wait of the client (`make bench`, 128 KB x 1). The transport must have nothing left
to send, and nothing may be given to it before the answer has left.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from typing import TYPE_CHECKING, Final

from brokers.log.errors import LogDiskFailed
from brokers.log.file_range import Stretch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from brokers.wire.apis.fetch import Records

# Bytes of one connection, before the event loop turns to the others.
_TURN_BYTES_MAX: Final = 4 * 1024 * 1024


class LentSender:
    """One connection's. `over` is called when an answer that did not leave at once has left, or with what broke it."""

    __slots__ = ("_at", "_over", "_pieces", "_socket", "_waits", "bytes_sent")

    def __init__(self, transport: asyncio.Transport, over: Callable[[Exception | None], None]) -> None:
        """Raises `OSError` where there is no handle left."""
        # A descriptor of our own, because the event loop lets nobody else wait for the transport's.
        self._socket = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        self._socket.setblocking(False)
        self._over = over
        self._pieces: deque[memoryview | Stretch] = deque()
        self._at = 0  # what has left of the first piece
        self._waits = False
        self.bytes_sent = 0  # of all answers

    @property
    def busy(self) -> bool:
        return bool(self._pieces)

    def send(self, pieces: Iterable[Records]) -> bool:
        """Whether all of it has left. Raises what `over` would be told."""
        assert not self._pieces
        for piece in pieces:
            if len(piece):
                self._pieces.append(piece if isinstance(piece, Stretch) else memoryview(piece))  # type: ignore[arg-type]
        return self._go_on()

    def close(self) -> None:
        """Send no more."""
        self._pieces.clear()
        self._wait(False)
        self._socket.close()

    def _go_on(self) -> bool:
        left = _TURN_BYTES_MAX
        try:
            while self._pieces and left > 0:
                left -= self._send_some(self._pieces[0], left)
        except BlockingIOError:
            pass
        self._wait(bool(self._pieces))
        return not self._pieces

    def _send_some(self, piece: memoryview | Stretch, bytes_max: int) -> int:
        if isinstance(piece, Stretch):
            sent = piece.send(self._socket.fileno(), self._at, bytes_max)
        else:
            sent = self._socket.send(piece[self._at :], socket.MSG_MORE if len(self._pieces) > 1 else 0)
        self._at += sent
        self.bytes_sent += sent
        if self._at == len(piece):
            self._pieces.popleft()
            self._at = 0
        return sent

    def _wait(self, waits: bool) -> None:
        if waits is not self._waits:
            self._waits = waits
            loop = asyncio.get_running_loop()
            if waits:
                loop.add_writer(self._socket.fileno(), self._writable)
            else:
                loop.remove_writer(self._socket.fileno())

    def _writable(self) -> None:
        try:
            left = self._go_on()
        except (OSError, LogDiskFailed) as error:
            self._pieces.clear()
            self._wait(False)
            self._over(error)
            return
        if left:
            self._over(None)
