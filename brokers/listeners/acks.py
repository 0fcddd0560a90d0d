"""Acknowledgements of pipelined produce requests, held for a moment so that more of them leave in one write.

It saves both sides wake-ups: with one message a request and a client that never waits, the client is the bottleneck.
It must not slow down a client that does wait. A client with one request in flight never has two answered by one read,
and is never held; one with a few more in flight falls silent while it is held, and is left alone after three times.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_STALLS_MAX: Final = 3
_HELD_MAX: Final = 2000


class Acknowledgements:
    """Of one connection. `send` gets the joined answers, in order."""

    __slots__ = ("_answers", "_more_came", "_send", "_stalls", "_timer", "_wait_s")

    def __init__(self, wait_ms: int, send: Callable[[bytes], None]) -> None:
        self._wait_s = wait_ms / 1000
        self._send = send
        self._answers: list[bytes] = []
        self._more_came = False
        self._stalls = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, answers: list[bytes]) -> None:
        """The answers to one read."""
        self._answers += answers
        if self._timer is not None:
            self._more_came = True
            if len(self._answers) > _HELD_MAX:
                self.flush()
        elif self._wait_s and len(answers) > 1 and self._stalls < _STALLS_MAX:
            self._more_came = False
            self._timer = asyncio.get_running_loop().call_later(self._wait_s, self._expire)
        else:
            self.flush()

    def flush(self) -> None:
        """Send what is held, now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._answers:
            answers, self._answers = self._answers, []
            self._send(b"".join(answers))

    def _expire(self) -> None:
        self._stalls = 0 if self._more_came else self._stalls + 1
        self.flush()
