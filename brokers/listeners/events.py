"""The events and actions of a connection's pipeline: the words between the machine and its shell.

Requests and answers are opaque here: the machine orders them, the shell makes them and carries them out.
"""

from __future__ import annotations

from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brokers.listeners.service import LookUp
    from brokers.wire.apis.fetch import FetchRequest, Records


class Event(IntEnum):
    """An event of a connection, and what comes with it."""

    ARRIVED = 0  # a read brought requests: `Read`
    ANSWERED = auto()  # the answer of what was just carried out, or of the request that blocked: `Answer`
    PROMISED = auto()  # that answer becomes known later, and what follows is not held back by it: `Answer`
    BLOCKED = auto()  # the request just begun holds back what follows
    NEEDS_LEADERS = auto()  # a request is not begun, its leaders have to be looked up: `Kept`
    NEEDS_COMMITS = auto()  # a request is not begun before all commits are over: `Kept`
    SERVED = auto()  # nothing more is carried out for now: `Served`
    KNOWN = auto()  # a promised answer has its pieces, or will never have them: `Answer`
    LOOKED_UP = auto()  # the leaders that requests need are known: list of `Kept`
    CONGESTED = auto()  # the socket has taken less than it was given
    DRAINED = auto()  # it has taken enough to go on, or all while `Do.DRAIN`
    LENT_LEFT = auto()  # an answer has left its files for the socket
    GREW = auto()  # a large request has come on, waits, or is over: `Growth`
    TURN_OVER = auto()  # a large request's time is up: whether others wait
    DELAY_OVER = auto()  # the moment is over for which the next read was put off
    CLIENT_ENDED = auto()  # the client sends no more
    CLOSE = auto()  # it is to end, after what is due
    GIVE_UP = auto()  # the same, or if it was told so before, at once
    BROKEN = auto()  # an answer will not come, and nothing may come after it
    LOST = auto()  # the socket is closed


class Do(IntEnum):
    """An action of the shell, and what comes with it."""

    SERVE = 0  # carry out in place what a read brought: its frames
    KEEP = auto()  # copy them, for they have to wait
    CARRY_ON = auto()  # carry out what waits
    LOOK_UP = auto()  # ask for the leaders that a request needs: `Kept`
    WRITE = auto()  # give pieces to the transport
    DRAIN = auto()  # tell when the socket has taken all
    LEND = auto()  # send pieces past the transport
    PACE = auto()  # read the socket or do not, as the pipeline's intake says
    DELAY = auto()  # tell when the moment is over for which reads are put off
    BEGIN_TURN = auto()  # tell when the time of a large request is up
    END_TURN = auto()
    HURRY = auto()  # let a fetch wait no longer, and end after a while
    REFUSE = auto()  # end for the sake of others: why
    BREAK = auto()  # an answer will not come: why
    STOP_READING = auto()  # nothing more is read, the receive buffer goes
    CLOSE = auto()  # close the transport after what it was given
    ABORT = auto()  # close it now


Actions = list[tuple[Do, Any]]


# Where the requests of a read lie, how many bytes it brought, and whether the first of them is Produce.
Read = tuple[list[tuple[int, int]], int, bool]
# The last answer, if it is not told yet; and of what a read brought, the requests that were not begun.
Served = tuple["Answer | None", "Sequence[Kept]"]


class Growth(NamedTuple):
    """A large request: whether it waits for room, and whether others may be waiting for it to become whole."""

    waits: bool
    has_right_of_way: bool


class Leaders(Enum):
    """The known leaders of the partitions that a request names."""

    UNASKED = auto()
    ASKED = auto()
    TOLD = auto()


UNASKED, ASKED, TOLD = Leaders  # by their own names, which costs less


class Kept:
    """A request that could not be carried out at once, copied. The machine looks at its size and at `leaders`."""

    __slots__ = ("fetch", "frame", "leaders", "look_up")

    def __init__(self, frame: bytearray, fetch: FetchRequest | None = None) -> None:
        self.frame = frame
        self.fetch = fetch  # what is read of it already
        self.leaders = UNASKED
        self.look_up: LookUp | None = None


class Answer:
    """`pieces` is None until it is known, and stays so after an `error`; `lent` says that some of them lie in files."""

    __slots__ = ("commits", "error", "lent", "pieces")

    def __init__(self, pieces: Sequence[Records] | None = None, *, lent: bool = False, commits: bool = False) -> None:
        self.pieces = pieces
        self.lent = lent
        self.commits = commits
        self.error: BaseException | None = None

    @property
    def bytes_in_memory(self) -> int:
        return sum(len(piece) for piece in self.pieces or () if isinstance(piece, bytes | memoryview))
