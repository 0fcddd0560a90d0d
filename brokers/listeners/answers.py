"""A connection's answers: they leave in the order of their requests, whatever becomes known first. Pure.

Records in a file stay there until they can leave: an answer with such pieces waits until the socket has taken all that
came before it, and then goes past the transport (`sendfile.py`). So a client that does not read costs no more than
`bytes_max` in the socket's buffer, as much behind an answer that is not known, and one answer's own bytes, however much
it has asked for.

    FREE     -> UNREAD    the client has not read enough of what was written
    FREE     -> DRAINING  the next answer is lent
    UNREAD   -> FREE      the socket has taken enough to go on
    UNREAD   -> DRAINING  the next answer is lent
    DRAINING -> LEAVING   the socket has taken all
    LEAVING  -> FREE      the lent answer has left
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from brokers.listeners.events import Actions, Do

if TYPE_CHECKING:
    from brokers.listeners.events import Answer


Pieces = list[bytes | memoryview]


class Output(Enum):
    FREE = auto()
    UNREAD = auto()
    DRAINING = auto()
    LEAVING = auto()


FREE, UNREAD, DRAINING, LEAVING = Output  # by their own names, which costs less
_WRITE: Final = Do.WRITE
_WRITABLE = (FREE, UNREAD)


class Answers:
    """One connection's; every method returns what is to be done."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.unsent: deque[Answer] = deque()
        self._unsent_bytes = 0  # of those that are known, without what lies in files
        self._lent = 0
        self.output = FREE

    def __len__(self) -> int:
        """How many have not left."""
        return len(self.unsent) + (self.output is LEAVING)

    @property
    def full(self) -> bool:
        """Whether no more is to be added: something leaves from a file, or too much waits for the client to read."""
        return self.output is not FREE or bool(self._lent) or self._unsent_bytes > self._bytes_max

    @property
    def unread(self) -> bool:
        """Whether the socket has not taken what it was given."""
        return self.output in (UNREAD, DRAINING)

    def add(self, answer: Answer) -> Actions:
        """Send it after all that came before it."""
        if not self.unsent and not answer.lent and answer.pieces is not None and self.output in _WRITABLE:
            return [(_WRITE, answer.pieces)]
        self.unsent.append(answer)
        self._lent += answer.lent
        return self.known(answer)

    def known(self, answer: Answer) -> Actions:
        """It has its pieces."""
        self._unsent_bytes += answer.bytes_in_memory
        return self._send()

    def congested(self) -> Actions:
        if self.output is FREE:
            self.output = UNREAD
        return []

    def drained(self) -> Actions:
        if self.output is DRAINING:
            self.output = LEAVING
            return [(Do.LEND, self._take().pieces)]
        if self.output is UNREAD:
            self.output = FREE
        return self._send()

    def left(self) -> Actions:
        """The lent answer has left."""
        self.output = FREE
        return self._send()

    def cut(self) -> None:
        """Forget the first that is not known, and all behind it."""
        first = next((n for n, answer in enumerate(self.unsent) if answer.pieces is None), len(self.unsent))
        while len(self.unsent) > first:
            self.unsent.pop()

    def drop(self) -> None:
        """Nothing leaves any more."""
        self.unsent.clear()
        self.output = FREE

    def _take(self) -> Answer:
        answer = self.unsent.popleft()
        self._unsent_bytes -= answer.bytes_in_memory
        self._lent -= answer.lent
        return answer

    def _send(self) -> Actions:
        """Send what is due, up to the first answer that has to wait."""
        actions: Actions = []
        while self.unsent and self.output in _WRITABLE:
            due = self.unsent[0]
            if due.error is not None:
                return [*actions, (Do.BREAK, due.error)]
            if due.pieces is None:
                break
            if due.lent:
                self.output = DRAINING
                return [*actions, (Do.DRAIN, None)]
            actions.append((_WRITE, self._take().pieces))
        return actions
