"""Whether a connection's socket is read: only while there is room for what it brings. Pure.

A client that ends its side sends no more, whatever it is told.
"""

from __future__ import annotations

from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING

from brokers.listeners.events import Actions, Do
from brokers.listeners.read_delay import ReadDelay

if TYPE_CHECKING:
    from brokers.listeners.config import ListenerLimits
    from brokers.listeners.events import Growth, Read


class Reads(Enum):
    ON = auto()
    PAUSED = auto()
    ENDED = auto()


ON, PAUSED, ENDED = Reads  # by their own names, which costs less


class Pause(IntEnum):
    """Why the socket is not read; what passes by itself, and not with what waits or is unread."""

    DELAY = auto()  # requests of a client that pipelines gather
    ROOM = auto()  # a large request waits for its turn


class Intake:
    """One connection's; every method returns what is to be done."""

    def __init__(self, limits: ListenerLimits) -> None:
        self._delay = ReadDelay() if limits.gather_ms else None
        self._pauses: set[Pause] = set()
        self._has_turn = False
        self.reads = ON

    def arrived(self, read: Read) -> Actions:
        frames, nbytes, produces = read
        if produces and self._delay is not None and self._delay.after(len(frames), nbytes):
            self._pauses.add(Pause.DELAY)
            return [(Do.DELAY, None)]
        return []

    def delay_over(self) -> Actions:
        self._pauses.discard(Pause.DELAY)
        return []

    def grew(self, growth: Growth) -> Actions:
        """A large request has come on, waits, or is over: while it holds up others, it has to become whole in time."""
        (self._pauses.add if growth.waits else self._pauses.discard)(Pause.ROOM)
        if growth.has_right_of_way is self._has_turn:
            return []
        self._has_turn = growth.has_right_of_way
        return [(Do.BEGIN_TURN if self._has_turn else Do.END_TURN, None)]

    def turn_over(self, crowded: bool) -> Actions:
        """Its time is up: it has more of it if nobody waits."""
        if not self._has_turn:
            return []
        return [(Do.REFUSE if crowded else Do.BEGIN_TURN, None)]

    def pace(self, crowded: bool, actions: Actions) -> None:
        """Read on, or not while it is `crowded` behind."""
        wanted = PAUSED if crowded or self._pauses else ON
        if wanted is not self.reads:
            self.reads = wanted
            actions.append((Do.PACE, None))

    def end(self) -> Actions:
        """Nothing more is read, and a large request that is not whole never will be."""
        self.reads = ENDED
        had_turn, self._has_turn = self._has_turn, False
        stop: Actions = [(Do.STOP_READING, None)]
        return [(Do.END_TURN, None), *stop] if had_turn else stop
