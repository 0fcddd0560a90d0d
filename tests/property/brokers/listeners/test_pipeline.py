"""Whatever a client sends, reads and leaves undone, and in whatever order its requests become known: what holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import partial
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from brokers.listeners.config import ListenerLimits
from brokers.listeners.events import UNASKED, Answer, Do, Event, Growth, Needs, Requests
from brokers.listeners.intake import Reads
from brokers.listeners.pipeline import CLOSED, CLOSING, READY, SERVING, Pipeline, State

REQUEST_BYTES = 60
ANSWER_BYTES = 50
LIMITS = ListenerLimits(requests_in_flight_max=12, unsent_bytes_max=300, waiting_bytes_max=600)
ENDS_AFTER = 20  # so many requests, that there is something to see before
READ_BEFORE_MORE_BYTES = LIMITS.unsent_bytes_max // 4


class Kind(IntEnum):
    PLAIN = 0
    LENT = auto()
    SYNCED = auto()  # answered later, and what follows passes
    COMMIT = auto()
    DEPENDS = auto()  # on the commits before it
    BLOCKS = auto()
    LOOKS_UP = auto()
    LOOKS_UP_TWICE = auto()  # its first answer is worth nothing by its turn
    MALFORMED = auto()


LIVE = frozenset(State) - {CLOSING, CLOSED}


@dataclass
class Request:
    number: int
    kind: Kind
    look_ups: int = 0
    begun: bool = False


class AnyConnection(RuleBasedStateMachine):
    """A client and a socket that do as they please, and the shell between them and the pipeline."""

    def __init__(self) -> None:
        super().__init__()
        self.pipeline = Pipeline(LIMITS)
        self.requests: list[Request] = []
        self.of_kept: dict[Requests, list[Request]] = {}
        self.begun: list[int] = []
        self.left: list[int] = []  # answers, in the order in which they left
        self.promised: list[tuple[Request, Answer]] = []
        self.asked: list[Requests] = []
        self.blocking: Request | None = None
        self.lending: list[int] | None = None
        self.buffered = 0
        self.high = LIMITS.unsent_bytes_max
        self.congested = False
        self.reading = True
        self.delays = 0
        self.waits_for_room = False
        self.told_to_close = False
        self.closed = False
        self.ended = False

    # --- the shell ----------------------------------------------------------------------------------------

    def tell(self, event: Event, what: Any = None) -> None:
        before = self.pipeline.state
        actions = self.pipeline.step(event, what)
        after = self.pipeline.state
        assert before in LIVE or after in {before, CLOSED}, "what ends goes on ending"
        for action, with_what in actions:
            self.act(action, with_what)

    def act(self, action: Do, what: Any) -> None:
        does: dict[Do, Callable[[Any], None]] = {
            Do.SERVE: self.serve,
            Do.KEEP: self.keep,
            Do.CARRY_ON: self.carry_on,
            Do.LOOK_UP: self.look_up,
            Do.WRITE: self.write,
            Do.DRAIN: self.drain,
            Do.LEND: self.lend,
            Do.PACE: self.pace,
            Do.DELAY: lambda _: setattr(self, "delays", self.delays + 1),
            Do.CLOSE: self.close_transport,
            Do.ABORT: self.close_transport,
            Do.BREAK: lambda _: self.tell(Event.BROKEN),
            Do.STOP_READING: lambda _: None,
            Do.HURRY: lambda _: None,
        }
        does[action](what)

    def serve(self, frames: list[Request]) -> None:
        begun, needs = self.carry_out(frames)
        self.served(self.copy(frames[begun:]) if begun < len(frames) else None, needs)

    def keep(self, frames: list[Request]) -> None:
        self.served(self.copy(frames), Needs.OTHERS)

    def served(self, kept: Requests | None, needs: Needs) -> None:
        ends = self.pipeline.state >= CLOSING or kept is None or not len(kept)
        self.tell(Event.SERVED, (None, None if ends else kept, needs))

    def look_up(self, kept: Requests) -> None:
        for request in self.left_of(kept):
            request.look_ups += 1
        self.asked.append(kept)

    def copy(self, requests: list[Request]) -> Requests:
        data = bytearray(REQUEST_BYTES * len(requests))
        ends = range(REQUEST_BYTES, len(data) + 1, REQUEST_BYTES)
        kept = Requests(data, memoryview(data), [(end - REQUEST_BYTES, end) for end in ends])
        self.of_kept[kept] = requests
        return kept

    def left_of(self, kept: Requests) -> list[Request]:
        return self.of_kept[kept][kept.number :]

    def carry_on(self, _: None) -> None:
        needs, left = Needs.TURN, None
        while (left is None or not len(left)) and (kept := self.pipeline.next()) is not None:
            assert kept not in self.asked, "its leaders are known, or it never asked"
            begun, needs = self.carry_out(self.left_of(kept))
            kept.number += begun
            left = kept
        self.served(left, needs)

    def carry_out(self, requests: list[Request]) -> tuple[int, Needs]:
        """Begin requests in order: how many, and what the first of those that are left needs."""
        begun = 0
        for request in requests:
            if not self.pipeline.serves:
                break
            wants = {Kind.LOOKS_UP: 1, Kind.LOOKS_UP_TWICE: 2}.get(request.kind, 0)
            if request.look_ups < wants:
                return begun, Needs.LEADERS
            if request.kind is Kind.DEPENDS and self.commits_under_way():
                return begun, Needs.COMMITS
            self.begin(request)
            begun += 1
        return begun, Needs.TURN

    def begin(self, request: Request) -> None:
        assert not self.told_to_close, "no request begins once the connection ends"
        assert self.pipeline.state is SERVING
        assert self.blocking is None
        assert self.lending is None, "none begins while an answer is leaving its files"
        assert not self.congested, "none begins while the client does not read"
        assert request.number == len(self.begun), "requests begin in order, each once"
        self.begun.append(request.number)
        match request.kind:
            case Kind.SYNCED | Kind.COMMIT:
                answer = Answer(commits=request.kind is Kind.COMMIT)
                self.promised.append((request, answer))
                self.tell(Event.PROMISED, answer)
            case Kind.BLOCKS:
                self.blocking = request
                self.tell(Event.BLOCKED)
            case Kind.MALFORMED if request.number > ENDS_AFTER:
                self.end_now(Event.CLOSE)
            case _:
                self.tell(Event.ANSWERED, self.answer_of(request))

    def answer_of(self, request: Request) -> Answer:
        return Answer(self.pieces_of(request), lent=request.kind is Kind.LENT)

    def pieces_of(self, request: Request) -> list[bytes]:
        return [request.number.to_bytes(4) + bytes(ANSWER_BYTES)]

    def write(self, pieces: list[bytes]) -> None:
        assert not self.closed, "nothing leaves after the end"
        assert self.lending is None, "nothing passes what is leaving its files"
        self.left.append(int.from_bytes(pieces[0][:4]))
        self.buffered += len(pieces[0])
        self.look_at_buffer()

    def look_at_buffer(self) -> None:
        if not self.congested and self.buffered > self.high:
            self.congested = True
            self.tell(Event.CONGESTED)

    def drain(self, _: None) -> None:
        if self.buffered:
            self.high = 0
            self.look_at_buffer()
        else:
            self.tell(Event.DRAINED)

    def lend(self, pieces: list[bytes]) -> None:
        assert not self.closed
        assert not self.buffered, "the socket has taken all before it"
        self.high = LIMITS.unsent_bytes_max
        self.lending = [int.from_bytes(pieces[0][:4])]
        if self.lending[0] % 2:
            self.lent_left()

    def lent_left(self) -> None:
        assert self.lending is not None
        self.left += self.lending
        self.lending = None
        self.tell(Event.LENT_LEFT)

    def pace(self, _: None) -> None:
        self.reading = self.pipeline.intake.reads is Reads.ON

    def close_transport(self, _: None) -> None:
        self.closed = True
        self.lending = None

    def end_now(self, event: Event) -> None:
        self.told_to_close = True
        self.tell(event)

    def commits_under_way(self) -> bool:
        return any(request.kind is Kind.COMMIT for request, _ in self.promised)

    # --- the world ----------------------------------------------------------------------------------------

    @precondition(lambda self: self.reading and not self.told_to_close and not self.ended and not self.closed)
    @rule(kinds=st.lists(st.sampled_from(Kind), min_size=1, max_size=8), grew=st.booleans())
    def send(self, kinds: list[Kind], grew: bool) -> None:
        first = len(self.requests)
        some = [Request(first + number, kind) for number, kind in enumerate(kinds)]
        self.requests += some
        self.tell(Event.ARRIVED, (some, REQUEST_BYTES * len(some), grew))
        self.waits_for_room = grew
        self.tell(Event.GREW, Growth(grew, has_right_of_way=False))

    @precondition(lambda self: self.can_become())
    @rule(data=st.data())
    def something_comes(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.can_become()))()

    def can_become(self) -> list[Callable[[], None]]:
        """What is waited for, and may come now in any order."""
        return [
            *(partial(self.become_known, *promise) for promise in self.promised),
            *(partial(self.hear_leaders, kept) for kept in self.asked),
            *([self.unblock] if self.blocking is not None else []),
            *([self.lent_left] if self.lending is not None else []),
            *([partial(self.read_answers, nbytes) for nbytes in (20, self.buffered)] if self.buffered else []),
            *([self.delay_over] if self.delays else []),
            *([self.room_again] if self.waits_for_room else []),
        ]

    def become_known(self, request: Request, answer: Answer) -> None:
        self.promised.remove((request, answer))
        answer.pieces = self.pieces_of(request)
        self.tell(Event.KNOWN, answer)

    def hear_leaders(self, kept: Requests) -> None:
        self.asked.remove(kept)
        self.tell(Event.LOOKED_UP, [kept])

    def unblock(self) -> None:
        request, self.blocking = self.blocking, None
        assert request is not None
        self.tell(Event.ANSWERED, self.answer_of(request))

    def read_answers(self, nbytes: int) -> None:
        self.buffered = max(0, self.buffered - nbytes)
        if self.congested and self.buffered <= (READ_BEFORE_MORE_BYTES if self.high else 0):
            self.congested = False
            self.tell(Event.DRAINED)

    def delay_over(self) -> None:
        self.delays -= 1
        self.tell(Event.DELAY_OVER)

    def room_again(self) -> None:
        self.waits_for_room = False
        self.tell(Event.GREW, Growth(waits=False, has_right_of_way=False))

    @precondition(lambda self: len(self.requests) > ENDS_AFTER or self.closed)
    @rule(event=st.sampled_from([Event.CLIENT_ENDED, Event.CLOSE, Event.GIVE_UP, Event.LOST, Event.BROKEN]))
    def end(self, event: Event) -> None:
        if event is Event.CLIENT_ENDED:
            self.ended = True
            self.tell(event)
        else:
            self.end_now(event)

    # --- what holds ---------------------------------------------------------------------------------------

    @invariant()
    def answers_leave_in_the_order_of_requests(self) -> None:
        assert self.left == list(range(len(self.left)))

    @invariant()
    def who_is_not_answered_yet_is_owed(self) -> None:
        owed = len(self.begun) > len(self.left) or len(self.requests) > len(self.begun)
        assert self.told_to_close or self.closed or self.pipeline.owes is owed

    @invariant()
    def none_is_served_between_events(self) -> None:
        assert self.pipeline.state is not SERVING

    @invariant()
    def what_is_paused_has_a_reason_and_what_has_one_is_paused(self) -> None:
        if self.told_to_close or self.ended or self.closed:
            return
        waiting = len(self.requests) - len(self.begun)
        owed = waiting + len([number for number in self.begun if number not in self.left]) - (self.blocking is not None)
        asks = waiting and any(kept.leaders is not UNASKED for kept in self.of_kept if self.waits(kept))
        bytes_max = LIMITS.waiting_bytes_max if asks else LIMITS.unsent_bytes_max
        reason = (
            self.congested
            or self.waits_for_room
            or self.delays > 0
            or owed > LIMITS.requests_in_flight_max
            or waiting * REQUEST_BYTES > bytes_max
        )
        assert self.reading is not reason

    def waits(self, kept: Requests) -> bool:
        return len(kept) > 0

    def teardown(self) -> None:
        """Once everything has come that is waited for, nothing waits any more, and all that was sent is answered."""
        while coming := self.can_become():
            coming[-1]()
        if self.told_to_close or self.ended:
            assert self.closed
        else:
            assert self.pipeline.state is READY
            assert self.left == [request.number for request in self.requests]
            assert self.reading


AnyConnection.TestCase.settings = settings(max_examples=200, stateful_step_count=60)
TestAnyConnection = AnyConnection.TestCase
