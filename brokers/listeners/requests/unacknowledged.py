"""Answers to produce requests that may not be given yet: what they promise is not safe.

Answers leave a connection in the order of the requests, so one that waits holds up those behind it. It holds up none
that stand before it, whatever partition they wait for.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from brokers.listeners.service import code_of
from brokers.replication.errors import ReplicaError
from brokers.wire.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from brokers.listeners.answers import Pieces
    from brokers.replication.acknowledgements import Acknowledged

    Waits = frozenset[Acknowledged]
    Codes = dict[Acknowledged, ErrorCode]
    Answer = Callable[[Codes], bytes]

Answers = list["bytes | asyncio.Future[Pieces]"]
"""The answers of one read in the order of its requests: those to send now, and those to send once they are known."""


class Unacknowledged:
    """Answers that wait for the same acknowledgements, one after another. Where a sync failed, what was appended may or
    may not survive: `answer` then raises that."""

    def __init__(self, waits: Waits) -> None:
        self.waits = waits
        self.answer: asyncio.Future[Pieces] = asyncio.get_running_loop().create_future()
        self._answers: list[Answer] = []
        self._left = len(waits)
        for acknowledged in waits:
            acknowledged.add_done_callback(self._one_is_over)

    def add(self, answer: Answer) -> None:
        """`answer` is given the code of each acknowledgement: none, or why it will not come."""
        self._answers.append(answer)

    def _one_is_over(self, _: Acknowledged) -> None:
        self._left -= 1
        if self._left or self.answer.done():
            return
        codes: Codes = {}
        for acknowledged, error in [(acknowledged, acknowledged.exception()) for acknowledged in self.waits]:
            if error is not None and not isinstance(error, ReplicaError):
                self.answer.set_exception(error)
                self.answer.exception()  # if the client is gone nobody asks for it, which is no fault
                return
            codes[acknowledged] = ErrorCode.NONE if error is None else code_of(error)
        self.answer.set_result([b"".join([answer(codes) for answer in self._answers])])


def add_answer(answers: Answers, last: Unacknowledged | None, waits: Waits, answer: Answer) -> Unacknowledged | None:
    """Add an answer to those of a read. `last` are those that end it, where they wait; returned is what is so now."""
    if not waits:
        if now := answer({}):
            answers.append(now)
        return last if not now else None
    if last is None or last.waits != waits:
        last = Unacknowledged(waits)
        answers.append(last.answer)
    last.add(answer)
    return last
