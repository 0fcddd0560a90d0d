"""A planted delay of requests to the coordination layer, for experiments that ask what such a request costs.

The event loop's own timers count milliseconds, and the delays of interest are shorter. So a thread sleeps.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable

T = TypeVar("T")


class Delay:
    """Every request is held up as long as every other, so they come out in the order in which they came."""

    def __init__(self, delay_us: int) -> None:
        self._delay_ns = delay_us * 1000
        self._waiting: SimpleQueue[tuple[int, asyncio.Future[None]]] = SimpleQueue()
        self._thread: Thread | None = None

    def __bool__(self) -> bool:
        return self._delay_ns > 0

    async def after(self, work: Awaitable[T]) -> T:
        """The result of `work`, so much later than it is known. An error passes at once."""
        result = await work
        await self._over()
        return result

    def _over(self) -> asyncio.Future[None]:
        if self._thread is None:
            self._thread = Thread(target=self._sleep, name="planted delay", daemon=True)
            self._thread.start()
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put((time.monotonic_ns() + self._delay_ns, over))
        return over

    def _sleep(self) -> None:
        while True:
            due_ns, over = self._waiting.get()
            time.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
            with suppress(RuntimeError):  # its event loop has ended, and nobody waits
                over.get_loop().call_soon_threadsafe(_tell, over)


def _tell(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)
