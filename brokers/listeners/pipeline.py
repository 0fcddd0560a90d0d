"""One client's connection as a machine: `step(event, what) -> actions`. Pure: socket, tasks and timers are its shell's.

Requests are carried out in the order in which they came, and answered in the same. The requests of a read are carried
out at once while the connection is READY; a request that cannot be begun yet is kept, and the state says what the first
kept one waits for. One step is a read, a run of produce requests or an answer, never a message.

    READY       nothing waits
    SERVING     requests are being carried out just now
    LOOKING_UP  the next have to hear first who leads the partitions that they name, and those behind them ask already
    COMMITTING  the next waits until all commits are over, which pass beside each other, messages and fetches
    BLOCKED     a fetch waits for data, or the coordination layer for an answer: later requests are held back
    UNREAD      the client does not read its answers, or one is leaving its files
    CLOSING     no request is begun any more; due answers leave
    CLOSED      only answers that the transport already has leave

    READY -> SERVING -> READY, LOOKING_UP, COMMITTING, BLOCKED or UNREAD
    LOOKING_UP, COMMITTING, UNREAD -> SERVING, READY, or each other, when what they wait for is over (`_now`)
    BLOCKED -> the same, when its answer is known
    each of them -> CLOSING -> CLOSED; each -> CLOSED where an answer will not come, or the socket is lost

A state before READY, in which a client has to prove who it is, would be a column more in `TABLE`. Two smaller machines
stand beside: whether the socket is read (`intake.py`; that the client has ended its side is one of its states), and how
answers leave (`answers.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Any, Final

from brokers.listeners.answers import Answers
from brokers.listeners.events import ASKED, TOLD, UNASKED, Actions, Do, Event, Needs
from brokers.listeners.intake import ENDED, Intake

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brokers.listeners.config import ListenerLimits
    from brokers.listeners.events import Answer, Read, Requests, Served


class State(IntEnum):
    READY = 0
    SERVING = auto()
    LOOKING_UP = auto()
    COMMITTING = auto()
    BLOCKED = auto()
    UNREAD = auto()
    CLOSING = auto()
    CLOSED = auto()


# By their own names: Python 3.11 looks an enum's member up slowly, and steps are on the path of every read.
READY, SERVING, LOOKING_UP, COMMITTING, BLOCKED, UNREAD, CLOSING, CLOSED = State
_SERVE: Final = Do.SERVE
_LOOK_UP: Final = Do.LOOK_UP
_CARRY_ON: Final = Do.CARRY_ON
_COMMITS: Final = Needs.COMMITS
_WAITING: Final = frozenset({READY, LOOKING_UP, COMMITTING, UNREAD})


class Backlog:
    """Requests that wait, read by read, in order. Behind some that had to ask for leaders, others ask as they come."""

    __slots__ = ("_asking_bytes_max", "_bytes", "_bytes_max", "count", "requests")

    def __init__(self, limits: ListenerLimits) -> None:
        self.requests: deque[Requests] = deque()
        self.count = 0
        self._bytes = 0
        self._bytes_max = limits.unsent_bytes_max
        self._asking_bytes_max = limits.waiting_bytes_max

    @property
    def _asks(self) -> bool:
        return bool(self.requests) and self.requests[-1].leaders is not UNASKED

    @property
    def full(self) -> bool:
        return self._bytes > (self._asking_bytes_max if self._asks else self._bytes_max)

    def add(self, kept: Requests) -> Actions:
        asks = self._asks
        self.requests.append(kept)
        self._counted(kept)
        return _ask((kept,)) if asks else []

    def take(self) -> Requests:
        kept = self.requests.popleft()
        self.count -= len(kept)
        self._bytes -= kept.size_bytes
        return kept

    def put_back(self, kept: Requests) -> Actions:
        self.requests.appendleft(kept)
        self._counted(kept)
        return []

    def put_back_to_ask(self, kept: Requests) -> Actions:
        """They need their leaders, though they may have asked before; those behind them ask if they have not."""
        behind = () if self._asks else tuple(self.requests)
        self.put_back(kept)
        return _ask((kept, *behind))

    def told(self, requests: Sequence[Requests]) -> Actions:
        for kept in requests:
            kept.leaders = TOLD
        return []

    def clear(self) -> None:
        self.requests.clear()
        self.count = self._bytes = 0

    def _counted(self, kept: Requests) -> None:
        self.count += len(kept)
        self._bytes += kept.size_bytes


def _ask(requests: Sequence[Requests]) -> Actions:
    for kept in requests:
        kept.leaders = ASKED
    return [(_LOOK_UP, kept) for kept in requests]


_KEEP: Final = {
    Needs.LEADERS: Backlog.put_back_to_ask,
    Needs.COMMITS: Backlog.put_back,
    Needs.TURN: Backlog.put_back,
    Needs.OTHERS: Backlog.add,
}


class Pipeline:
    """One connection's. All but `step` and `next` is there to be looked at."""

    def __init__(self, limits: ListenerLimits) -> None:
        self.state = READY
        self.intake = Intake(limits)
        self.answers = Answers(limits.unsent_bytes_max)
        self.backlog = Backlog(limits)
        self.commits = 0  # so many are under way
        self._in_flight_max = limits.requests_in_flight_max

    @property
    def serves(self) -> bool:
        """Whether the next request may be carried out."""
        return self.state is SERVING and not self.answers.full

    @property
    def owes(self) -> bool:
        """Whether a request has not been answered yet."""
        return self.state is BLOCKED or bool(self.backlog.requests) or len(self.answers) > 0

    def step(self, event: Event, what: Any = None) -> Actions:
        """Take an event; what has to be done, in this order. An action may bring about the next event at once."""
        actions = TABLE[event][self.state](self, what)
        if self.state is not SERVING:
            self._settle(actions)
        return actions

    def next(self) -> Requests | None:
        """On `Do.CARRY_ON`, again and again: the next requests that are to be carried out, as long as there are any."""
        requests = self.backlog.requests
        return self.backlog.take() if requests and requests[0].leaders is not ASKED and self.serves else None

    def _settle(self, actions: Actions) -> None:
        """Add what follows from where a step led."""
        if self.state in _WAITING:
            self.state = self._now()
            if self.state is SERVING:
                actions.append((_CARRY_ON, None))
                return
        if self.intake.reads is not ENDED:
            self.intake.pace((self.state is not READY or bool(self.answers.unsent)) and self._crowded(), actions)
        elif not self.owes and self.state is not CLOSED:
            self.state = CLOSED
            actions.append((Do.CLOSE, None))

    def _now(self) -> State:
        """What the next request waits for."""
        if self.commits and self.state is COMMITTING:
            return COMMITTING
        if self.answers.full:
            return UNREAD
        requests = self.backlog.requests
        if not requests:
            return READY
        return LOOKING_UP if requests[0].leaders is ASKED else SERVING

    def _crowded(self) -> bool:
        """Whether so much waits that no more is to be read."""
        waiting = self.backlog.count + len(self.answers)
        return self.answers.unread or waiting > self._in_flight_max or self.backlog.full

    # --- steps --------------------------------------------------------------------------------------------

    def serve(self, read: Read) -> Actions:
        self.state = SERVING
        return [*self.intake.arrived(read), (_SERVE, read[0])]

    def keep(self, read: Read) -> Actions:
        return [*self.intake.arrived(read), (Do.KEEP, read[0])]

    def answer(self, answer: Answer) -> Actions:
        self.commits += answer.commits
        return self.answers.add(answer)

    def unblock(self, answer: Answer) -> Actions:
        self.state = READY
        return self.answers.add(answer)

    def know(self, answer: Answer) -> Actions:
        self.commits -= answer.commits
        return self.answers.known(answer)

    def block(self, _: None) -> Actions:
        self.state = BLOCKED
        return []

    def served(self, served: Served) -> Actions:
        answer, kept, needs = served
        actions = [] if answer is None else self.answers.add(answer)
        if self.state is SERVING:
            self.state = COMMITTING if needs is _COMMITS else READY
        return actions if kept is None else actions + _KEEP[needs](self.backlog, kept)

    def client_ended(self, _: None) -> Actions:
        return [*self.intake.end(), (Do.HURRY, None)] if self.owes else self.intake.end()

    def close(self, _: None) -> Actions:
        self.state = CLOSING
        self.answers.cut()
        self.backlog.clear()
        return self.intake.end()

    def drop(self, _: object) -> Actions:
        self.state = CLOSED
        self.answers.drop()
        self.backlog.clear()
        return [*self.intake.end(), (Do.ABORT, None)]


Step = Callable[[Pipeline, Any], Actions]


def impossible(pipeline: Pipeline, what: object) -> Actions:
    """No order of events leads here; if one did, it would be a bug of the shell's."""
    raise AssertionError(f"{what} in {pipeline.state.name}")


def too_late(_: Pipeline, __: object) -> Actions:
    """The connection ends; nobody waits for this any more."""
    return []


_LIVE: Final = tuple(state for state in State if state < CLOSING)
_BETWEEN: Final = tuple(state for state in _LIVE if state is not SERVING)  # as the event loop finds it
_HELD: Final = (LOOKING_UP, COMMITTING, BLOCKED, UNREAD)
_ENDING: Final = (CLOSING, CLOSED)


def _row(*cells: tuple[tuple[State, ...], Step]) -> tuple[Step, ...]:
    steps = {state: step for states, step in cells for state in states}
    return tuple(steps.get(state, impossible) for state in State)


_ROWS: Final[dict[Event, tuple[Step, ...]]] = {
    Event.ARRIVED: _row(((READY,), Pipeline.serve), (_HELD, Pipeline.keep)),
    Event.ANSWERED: _row(((SERVING,), Pipeline.answer), ((BLOCKED,), Pipeline.unblock), (_ENDING, too_late)),
    Event.PROMISED: _row(((SERVING,), Pipeline.answer)),
    Event.BLOCKED: _row(((SERVING,), Pipeline.block)),
    Event.SERVED: _row(((SERVING, *_HELD), Pipeline.served), (_ENDING, too_late)),
    Event.KNOWN: _row(((*_BETWEEN, CLOSING), Pipeline.know), ((CLOSED,), too_late)),
    Event.LOOKED_UP: _row(((SERVING, *_HELD), lambda p, requests: p.backlog.told(requests)), (_ENDING, too_late)),
    Event.CONGESTED: _row((tuple(State), lambda p, _: p.answers.congested())),
    Event.DRAINED: _row(((*_LIVE, CLOSING), lambda p, _: p.answers.drained()), ((CLOSED,), too_late)),
    Event.LENT_LEFT: _row(((SERVING, UNREAD, CLOSING), lambda p, _: p.answers.left()), ((CLOSED,), too_late)),
    Event.GREW: _row((_LIVE, lambda p, growth: p.intake.grew(growth)), (_ENDING, too_late)),
    Event.TURN_OVER: _row((_BETWEEN, lambda p, crowded: p.intake.turn_over(crowded)), (_ENDING, too_late)),
    Event.DELAY_OVER: _row((_BETWEEN, lambda p, _: p.intake.delay_over()), (_ENDING, too_late)),
    Event.CLIENT_ENDED: _row((_BETWEEN, Pipeline.client_ended), (_ENDING, too_late)),
    Event.CLOSE: _row((_LIVE, Pipeline.close), (_ENDING, too_late)),
    Event.GIVE_UP: _row((_LIVE, Pipeline.close), (_ENDING, Pipeline.drop)),
    Event.BROKEN: _row(((*_LIVE, CLOSING), Pipeline.drop), ((CLOSED,), too_late)),
    Event.LOST: _row((tuple(State), Pipeline.drop)),
}
TABLE: Final = tuple(_ROWS[event] for event in Event)
