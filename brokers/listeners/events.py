"""The events and actions of a connection's pipeline: the words between the machine and its shell.

Requests and answers are opaque here: the machine orders them, the shell makes them and carries them out.
"""

from __future__ import annotations

from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

from brokers.wire.framing import SIZE_BYTES

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
    SERVED = auto()  # nothing more is carried out for now: `Served`
    KNOWN = auto()  # a promised answer has its pieces, or will never have them: `Answer`
    LOOKED_UP = auto()  # the leaders that requests need are known: list of `Requests`
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
    LOOK_UP = auto()  # ask for the leaders that requests need: `Requests`
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
# The last answer, if it is not told yet; requests that are not begun, and what they need.
Served = tuple["Answer | None", "Requests | None", "Needs"]


class Growth(NamedTuple):
    """A large request: whether it waits for room, and whether others may be waiting for it to become whole."""

    waits: bool
    has_right_of_way: bool


class Needs(Enum):
    """What has to be before requests are begun."""

    LEADERS = auto()  # those of the partitions that they name have to be looked up
    COMMITS = auto()  # all commits are over
    TURN = auto()  # what holds them back is over
    OTHERS = auto()  # the same, and all that came before them and wait are begun


class Leaders(Enum):
    """The known leaders of the partitions that requests name."""

    UNASKED = auto()
    ASKED = auto()
    TOLD = auto()


UNASKED, ASKED, TOLD = Leaders  # by their own names, which costs less


class Requests:
    """The requests that one read brought, in order: those from `number` on are not begun. They lie in `data` at
    `frames`; the first `alike` are of one size. While `lent`, `data` is the receive buffer, whose bytes are gone with
    the next read. The machine looks at their number, their size and `leaders`."""

    __slots__ = ("alike", "data", "fetches", "frames", "leaders", "lent", "look_up", "number", "view")

    def __init__(
        self, data: bytearray, view: memoryview, frames: list[tuple[int, int]], alike: int = 0, *, lent: bool = False
    ) -> None:
        self.data = data
        self.view = view
        self.frames = frames
        self.alike = alike
        self.lent = lent
        self.number = 0
        self.leaders = UNASKED
        self.look_up: LookUp | None = None
        self.fetches: dict[int, FetchRequest] = {}  # that are read already, by where they begin

    def __len__(self) -> int:
        return len(self.frames) - self.number

    @property
    def size_bytes(self) -> int:
        return self.frames[-1][1] - self.frames[self.number][0]

    def kept(self) -> Requests:
        """Those that are not begun, with bytes that stay."""
        if not self.lent:
            return self
        first = self.frames[self.number][0] - SIZE_BYTES
        data = bytearray(self.view[first : self.frames[-1][1]])
        frames = self.frames[self.number :]
        if first:
            frames = [(start - first, end - first) for start, end in frames]
        kept = Requests(data, memoryview(data), frames, max(0, self.alike - self.number))
        kept.fetches = {start - first: fetch for start, fetch in self.fetches.items()}
        return kept


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
