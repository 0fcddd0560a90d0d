"""Reads of a producer that does not wait for answers, put off for a moment so that each brings more requests. Pure.

With one message a request, a read costs more than the request: a wake-up, calls into the kernel, an append, the
answers' way back. The requests that such a client sends in that time wait in its socket: no loss (`make bench`,
8 B x 1, 1 KB x 1). A client that does wait would be slowed down, so

- delays begin with a read of several requests, which shows that the client pipelines;
- where three delays in turn have brought few requests, or the same number, the client is left alone: it waits itself by
  now, or had sent all that its window allows. After some reads the next of several requests begins again, and how many
  reads that takes doubles with each failure.
"""

from __future__ import annotations

from typing import Final

ENOUGH: Final = 16
# Beyond, a read is large enough, and more might fill the socket.
READ_BYTES_MAX: Final = 256 * 1024
TRIES: Final = 3
READS_ALONE: Final = 64
READS_ALONE_MAX: Final = 16 * 1024


class ReadDelay:
    """The delays of one connection."""

    __slots__ = ("_alone", "_last", "_penalty", "_tries")

    def __init__(self) -> None:
        self._tries = 0
        self._last = 0
        self._alone = 0
        self._penalty = READS_ALONE

    def after(self, requests: int, nbytes: int) -> bool:
        """Whether the next read is to be put off after one that brought so much."""
        if nbytes > READ_BYTES_MAX:
            return False
        if not self._tries:
            self._alone -= 1
            if self._alone > 0 or requests == 1:
                return False
            self._tries = TRIES
        elif requests < ENOUGH or requests == self._last:
            self._tries -= 1
            if not self._tries:
                self._alone = self._penalty
                self._penalty = min(2 * self._penalty, READS_ALONE_MAX)
                return False
        else:
            self._tries, self._penalty = TRIES, READS_ALONE
        self._last = requests
        return True
