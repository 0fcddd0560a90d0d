"""Reads of a producer that does not wait for answers, put off for a moment so that each brings more requests.

With one message a request, a read costs more than the request: a wake-up, calls into the kernel, an append, the
answers' way back. What such a client sends meanwhile waits in its socket, and nothing is lost by it (`make bench`,
8 B x 1, 1 KB x 1). A client that does wait would be slowed down, so

- waits begin with a read of several requests, which shows that the client pipelines;
- where three waits in turn have brought few requests, or the same number, the client is left alone: it waits itself by
  now, or had sent all that its window allows. After some reads the next of several requests begins again, and how many
  reads that takes doubles with each failure.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

ENOUGH: Final = 16
# Beyond, a read is large enough, and more might fill the socket.
READ_BYTES_MAX: Final = 256 * 1024
TRIES: Final = 3
READS_ALONE: Final = 64
READS_ALONE_MAX: Final = 16 * 1024


class Gathering:
    """Of one connection. `pace` is called when reads are to be put off, and when no longer."""

    __slots__ = ("_alone", "_last", "_pace", "_penalty", "_tries", "_wait_s", "under_way")

    def __init__(self, wait_ms: int, pace: Callable[[], None]) -> None:
        self._wait_s = wait_ms / 1000
        self._pace = pace
        self._tries = 0
        self._last = 0
        self._alone = 0
        self._penalty = READS_ALONE
        self.under_way = False

    def after(self, requests: int, nbytes: int) -> None:
        """What the last read brought, once it has been carried out."""
        if nbytes > READ_BYTES_MAX or not self._wait_s:
            return
        if not self._tries:
            self._alone -= 1
            if self._alone > 0 or requests == 1:
                return
            self._tries = TRIES
        elif requests < ENOUGH or requests == self._last:
            self._tries -= 1
            if not self._tries:
                self._alone = self._penalty
                self._penalty = min(2 * self._penalty, READS_ALONE_MAX)
                return
        else:
            self._tries, self._penalty = TRIES, READS_ALONE
        self._last = requests
        self.under_way = True
        asyncio.get_running_loop().call_later(self._wait_s, self._end)
        self._pace()

    def _end(self) -> None:
        self.under_way = False
        self._pace()
