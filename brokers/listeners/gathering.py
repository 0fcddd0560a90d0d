"""Reads of a producer that does not wait for answers, put off for a moment so that each brings more requests.

With one message a request, a read costs more than the request: a wake-up, calls into the kernel, an append, the
answers' way back. What such a client sends meanwhile waits in its socket, and nothing is lost by it (`make bench`,
8 B x 1). A client that does wait would be slowed down, so

- only a read with several requests is followed by a wait;
- a client is left alone when waits have brought few requests some times, or the same number: then it had sent all that
  its window allows, and waited itself. After many reads it is tried again, for it may have changed.
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
READS_ALONE: Final = 500


class Gathering:
    """Of one connection. `pace` is called when reads are to be put off, and when no longer."""

    __slots__ = ("_alone", "_last", "_pace", "_tries", "_wait_s", "under_way")

    def __init__(self, wait_ms: int, pace: Callable[[], None]) -> None:
        self._wait_s = wait_ms / 1000
        self._pace = pace
        self._tries = TRIES
        self._last = 0
        self._alone = 0
        self.under_way = False

    def after(self, requests: int, nbytes: int) -> None:
        """What the last read brought, once it has been carried out."""
        if requests == 1 or nbytes > READ_BYTES_MAX or not self._wait_s:
            return
        if not self._tries:
            self._alone += 1
            if self._alone < READS_ALONE:
                return
            self._alone, self._tries = 0, 1
        elif requests < ENOUGH or requests == self._last:
            self._tries -= 1
        else:
            self._tries = TRIES
        self._last = requests
        self.under_way = True
        asyncio.get_running_loop().call_later(self._wait_s, self._end)
        self._pace()

    def _end(self) -> None:
        self.under_way = False
        self._pace()
