"""A connection's answers: they leave in the order of their requests, whatever becomes known first."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

Pieces = list[bytes | memoryview]


class Answers:
    """`failed` is told of an answer that will not come; `left` is called when some that waited have left.

    After `end` nothing leaves any more.
    """

    def __init__(
        self, transport: asyncio.Transport, failed: Callable[[BaseException], None], left: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._failed = failed
        self._left = left
        self._unsent: deque[Pieces | asyncio.Future[Pieces]] = deque()
        self._ended = False

    def __len__(self) -> int:
        """How many wait."""
        return len(self._unsent)

    def send(self, pieces: Pieces) -> None:
        """Send an answer after all that came before it."""
        if self._unsent:
            self._unsent.append(pieces)
        elif not self._ended:
            self._transport.writelines(pieces)

    def send_later(self, pieces: asyncio.Future[Pieces]) -> None:
        """The same, once it is known."""
        self._unsent.append(pieces)
        pieces.add_done_callback(lambda _: self._send_ready())

    def end(self) -> None:
        self._ended = True

    def _send_ready(self) -> None:
        """Send what is due, up to the first answer that still waits."""
        while self._unsent and not self._ended:
            due = self._unsent[0]
            if isinstance(due, asyncio.Future):
                if not due.done():
                    break
                error = None if due.cancelled() else due.exception()
                if error is not None:
                    self._failed(error)
                    return
                due = [] if due.cancelled() else due.result()
            self._unsent.popleft()
            self._transport.writelines(due)
        self._left()
