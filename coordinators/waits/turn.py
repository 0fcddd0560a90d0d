"""What is written once for all that ask for it in one turn of the event loop.

A write costs nearly the same for one record as for many. So the commits of a turn wait for its end, and are answered
when the one write that holds them has returned.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

from coordinators.errors import CoordinationError, JournalFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

K = TypeVar("K")
V = TypeVar("V")


class Turn(Generic[K, V]):
    """Values by their keys. Of several for one key the last is written, which makes those before it superfluous.

    `write` gets all values of a turn. Where it raises, all who asked in that turn get the error.
    """

    def __init__(self, write: Callable[[Mapping[K, V]], None]) -> None:
        self._write = write
        self._values: dict[K, V] = {}
        self._written: asyncio.Future[None] | None = None

    def add(self, values: Mapping[K, V]) -> asyncio.Future[None]:
        """What to await until these are written; all of a turn share it."""
        if self._written is None:
            loop = asyncio.get_running_loop()
            self._written = loop.create_future()
            loop.call_soon(self._end, self._written)
        self._values.update(values)
        return self._written

    def _end(self, written: asyncio.Future[None]) -> None:
        values, self._values, self._written = self._values, {}, None
        try:
            self._write(values)
        except (CoordinationError, JournalFailed) as error:
            if not written.done():
                written.set_exception(error)
        else:
            if not written.done():
                written.set_result(None)
