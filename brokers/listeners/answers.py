"""A connection's answers: they leave in the order of their requests, whatever becomes known first.

What lies in a file stays there until it can leave: an answer with such pieces waits until the socket has taken all that
came before it, and then goes past the transport (`sendfile.py`). So a client that does not read costs no more than
`bytes_max` and one answer's own bytes, however much it has asked for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, cast

from brokers.listeners.sendfile import LentSender
from brokers.log.errors import LogError
from brokers.log.file_range import Stretch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from brokers.wire.apis.fetch import Records

Pieces = list[bytes | memoryview]


class Answers:
    """`failed` is told of an answer that will not come; `left` is called when some that waited have left.

    The owner passes on when the transport has `drained`.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        bytes_max: int,
        failed: Callable[[BaseException], None],
        left: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._bytes_max = bytes_max
        self._failed = failed
        self._left = left
        self._unsent: deque[Sequence[Records] | asyncio.Future[Pieces]] = deque()
        self._unsent_bytes = 0  # of those that are known, without what lies in files
        self._lent: LentSender | None = None
        self._lent_waits = 0
        self._ends = False
        transport.set_write_buffer_limits(high=bytes_max)

    def __len__(self) -> int:
        """How many wait."""
        return len(self._unsent) + self._leaving

    @property
    def _leaving(self) -> bool:
        return self._lent is not None and self._lent.busy

    @property
    def backlog(self) -> tuple[int, int]:
        """How much the client has left unread, and how much has left from files: one changes while it reads."""
        return self._transport.get_write_buffer_size(), 0 if self._lent is None else self._lent.bytes_sent

    @property
    def behind(self) -> bool:
        """Whether the client has not read yet what was sent."""
        return self._leaving or self._transport.get_write_buffer_size() > 0

    @property
    def full(self) -> bool:
        """Whether no more is to be added: something leaves from a file, or too much waits for the client to read."""
        if self._lent_waits or self._leaving:
            return True
        return self._unsent_bytes + self._transport.get_write_buffer_size() > self._bytes_max

    def send(self, pieces: Sequence[Records], *, lent: bool = False) -> None:
        """Send an answer after all that came before it; `lent` says that some of it lies in a file."""
        if self._ends:
            return
        if not lent and not self._unsent and not self._leaving:
            self._transport.writelines(cast("Pieces", pieces))
            return
        self._unsent.append(pieces)
        self._unsent_bytes += _bytes_in_memory(pieces)
        self._lent_waits += lent
        self._send_ready()

    def send_later(self, pieces: asyncio.Future[Pieces]) -> None:
        """The same, once it is known."""
        self._unsent.append(pieces)
        pieces.add_done_callback(lambda _: self._known())

    def end(self) -> None:
        """Send what is known by now as far as the first that is not, and then close the transport."""
        self._ends = True
        known = [pieces for pieces in self._unsent if not isinstance(pieces, asyncio.Future)]
        first = next((n for n, pieces in enumerate(self._unsent) if isinstance(pieces, asyncio.Future)), len(known))
        self._unsent = deque(known[:first])
        self._send_ready()

    def drop(self) -> None:
        """Nothing leaves any more."""
        self._ends = True
        self._unsent.clear()
        if self._lent is not None:
            self._lent.close()
            self._lent = None

    def drained(self) -> None:
        """The transport has taken what it was given, or enough of it to go on."""
        if self._lent_waits and not self._transport.get_write_buffer_size():
            self._send_ready()

    def _known(self) -> None:
        if not self._ends:
            self._send_ready()
            self._left()

    def _send_ready(self) -> None:
        """Send what is due, up to the first answer that has to wait."""
        while self._unsent and not self._leaving:
            due = self._unsent[0]
            if isinstance(due, asyncio.Future):
                if not due.done():
                    return
                error = None if due.cancelled() else due.exception()
                if error is not None:
                    self._failed(error)
                    return
                self._transport.writelines([] if due.cancelled() else due.result())
            elif any(isinstance(piece, Stretch) for piece in due):
                if self._transport.get_write_buffer_size():
                    self._transport.set_write_buffer_limits(high=0)  # until `drained`
                    return
                self._unsent_bytes -= _bytes_in_memory(due)
                self._lent_waits -= 1
                if not self._lend(due):
                    return
            else:
                self._unsent_bytes -= _bytes_in_memory(due)
                self._transport.writelines(cast("Pieces", due))
            self._unsent.popleft()
        if self._ends and not self._leaving:
            self._transport.close()

    def _lend(self, pieces: Iterable[Records]) -> bool:
        """Whether it is on its way or has left; nothing else leaves before."""
        self._transport.set_write_buffer_limits(high=self._bytes_max)
        try:
            if self._lent is None:
                self._lent = LentSender(self._transport, self._lent_left)
            self._lent.send(pieces)
        except (OSError, LogError) as error:
            self._failed(error)
            return False
        return True

    def _lent_left(self, error: Exception | None) -> None:
        """A lent answer has left, or will not: half an answer is no answer, so the connection ends."""
        if error is not None:
            self._failed(error)
            return
        self._send_ready()
        self._left()


def _bytes_in_memory(pieces: Iterable[Records]) -> int:
    return sum(len(piece) for piece in pieces if not isinstance(piece, Stretch))
