"""Whether a broker may answer from its memory without having heard from the others first.

A process that was stopped for a while, or whose event loop stood still, has missed what happened in that time, and
cannot tell the messages that waited for it from new ones. Its own clock tells that it was away: it looks at the clock
some times in `doubt_s`. After a longer pause it doubts until it has heard, and answers nothing that it would
acknowledge. `Doubt` is pure; `Freshness` looks at the clock and asks.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, Final

from coordinators.errors import JournalFailed, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

TICKS_IN_DOUBT: Final = 4
HEARD_WITHIN_S: Final = 5.0  # a request that needs this broker to have heard from the others waits no longer


class Doubt:
    """What is known is good until `sure_until`. Times are in seconds of a monotonic clock, and arguments."""

    def __init__(self, doubt_s: float) -> None:
        self.doubt_s = doubt_s
        self._ticked_at = -inf
        self.sure_until = inf if doubt_s == inf else -inf
        self.naps = 0

    def tick(self, now: float) -> None:
        """The process is awake, and looks at the clock."""
        if now - self._ticked_at >= self.doubt_s:
            self.naps += 1
            self.forget()
        self._ticked_at = now

    def trust(self, since: float, naps: int) -> None:
        """What is known holds all that had happened at `since`, as was found out without a nap: `naps` is their number
        at the beginning of the question."""
        if naps == self.naps:
            self.sure_until = max(self.sure_until, since + self.doubt_s)

    @property
    def sure(self) -> bool:
        """Whether nothing was missed, as far as the last look at the clock tells."""
        return self.sure_until != -inf

    def forget(self) -> None:
        """Something may have been missed."""
        self.sure_until = -inf


class Freshness:
    """One broker's doubt, the looks at the clock, and the question to the others, one at a time for all who wait.

    `awake` is called some times in the doubt's time: it keeps sure, or begins to hear. `hear` learns of all that has
    happened by now, and raises `Unavailable` where it cannot.
    """

    def __init__(
        self,
        me: int,
        doubt: Doubt,
        clock: Callable[[], float],
        awake: Callable[[], None],
        hear: Callable[[], Coroutine[None, None, None]],
    ) -> None:
        self._me = me
        self._doubt = doubt
        self._clock = clock
        self._awake = awake
        self._hear = hear
        self._looking: asyncio.Task[None] | None = None
        self._hearing: asyncio.Task[None] | None = None

    def begin(self, since: float) -> None:
        """This broker's knowledge is good as of `since`; from now on it looks at the clock."""
        self._doubt.tick(self._clock())
        self._doubt.trust(since, self._doubt.naps)
        self._looking = asyncio.create_task(self._look_at_the_clock())

    async def end(self) -> None:
        tasks = [task for task in (self._looking, self._hearing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_at_the_clock(self) -> None:
        while True:
            await asyncio.sleep(self._doubt.doubt_s / TICKS_IN_DOUBT)
            self._doubt.tick(self._clock())
            self._awake()

    def begin_hearing(self) -> asyncio.Task[None]:
        if self._hearing is None or self._hearing.done():
            self._hearing = asyncio.create_task(self._hear())
            self._hearing.add_done_callback(lambda done: done.cancelled() or done.exception())  # if nobody waits for it
        return self._hearing

    async def heard(self) -> None:
        """Wait until this broker knows of all that had happened when it was asked. Raises `Unavailable`."""
        self._doubt.tick(self._clock())  # a broker that was just woken may be asked before it looks at the clock
        try:
            async with asyncio.timeout(HEARD_WITHIN_S):
                while self._clock() >= self._doubt.sure_until:
                    hearing = self.begin_hearing()
                    await asyncio.wait({hearing})
                    if hearing.cancelled():
                        raise Unavailable(f"broker {self._me} is stopping")
                    hearing.result()
        except JournalFailed as error:  # what has to be noted before this broker is sure cannot be
            raise Unavailable(str(error)) from error
        except TimeoutError:
            raise Unavailable(
                f"broker {self._me} was away, and has not heard from the others within {HEARD_WITHIN_S:.0f} s"
            ) from None
