"""Whether what lies in a broker's memory may be answered without having heard from the others first. Pure.

A process that was stopped for a while, or whose event loop stood still, knows of nothing that happened meanwhile, and
cannot tell the messages that waited for it from new ones. Its own clock tells that it was away: it looks at it some
times in `doubt_s`. After a longer pause it doubts until it has heard, and answers nothing that it would acknowledge.
"""

from __future__ import annotations

from math import inf
from typing import Final

TICKS_IN_DOUBT: Final = 4


class Doubt:
    """What is known is good until `sure_until`. Times are in seconds of a monotonic clock, and arguments."""

    def __init__(self, doubt_s: float) -> None:
        self._doubt_s = doubt_s
        self._ticked_at = -inf
        self.sure_until = inf if doubt_s == inf else -inf
        self.naps = 0

    def tick(self, now: float) -> None:
        """The process is awake, and looks at the clock."""
        if now - self._ticked_at >= self._doubt_s:
            self.naps += 1
            self.forget()
        self._ticked_at = now

    def trust(self, since: float, naps: int) -> None:
        """What is known holds all that had happened at `since`, as was found out without a nap: `naps` is their number
        at the beginning of the question."""
        if naps == self.naps:
            self.sure_until = max(self.sure_until, since + self._doubt_s)

    @property
    def sure(self) -> bool:
        """Whether nothing was missed, as far as the last look at the clock tells."""
        return self.sure_until != -inf

    def forget(self) -> None:
        """Something may have been missed."""
        self.sure_until = -inf
