"""One client's connection, as the event loop sees it: it tells the pipeline what happens, and does what that asks for.

`pipeline.py` decides, `serving.py` carries requests out, `client_socket.py` sends their answers.

`get_buffer` must neither close nor pause: uvloop calls it in the middle of a read, and would write to what is gone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from brokers.listeners.client_socket import ClientSocket
from brokers.listeners.events import Do, Event, Growth
from brokers.listeners.intake import ON
from brokers.listeners.pipeline import CLOSING, Pipeline
from brokers.listeners.serving import Serving
from brokers.log.errors import LogError
from brokers.wire.apis.table import ApiKey
from brokers.wire.errors import ErrorCode, Malformed, MalformedReason
from brokers.wire.framing import ReceiveBuffer

if TYPE_CHECKING:
    from collections.abc import Callable

    from brokers.listeners.connections import Connections
    from brokers.listeners.service import Service

HALF_CLOSED_S_MAX: Final = 2.0
_ARRIVED: Final = Event.ARRIVED
_PRODUCE: Final = ApiKey.PRODUCE.to_bytes(2)
# Bytes that a client sends while its last answers leave. If they stayed unread, the close would reset the connection.
_THROWN_AWAY: Final = memoryview(bytearray(16 * 1024))


class Connection(asyncio.BufferedProtocol):
    """`connections` is told of its beginning and end, and holds its tasks."""

    def __init__(self, service: Service, connections: Connections) -> None:
        self._service = service
        self._connections = connections
        self.spawn = connections.spawn
        self.pipeline = Pipeline(service.limits)
        self.incoming = ReceiveBuffer(service.limits.frames, service.budget, self.grew)
        self._turn: asyncio.TimerHandle | None = None
        self._backlog = (0, 0)
        self.idle_sweeps = 0
        self.host = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer = transport.get_extra_info("peername")
        self.host = str(peer[0]) if peer else ""
        self.socket = ClientSocket(cast("asyncio.Transport", transport), self._service.limits, self.tell, self.fail)
        self._serving = Serving(self._service, self)
        self._actions = self._all_actions()
        if not self._connections.admit(self):
            self.socket.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.forget(self)
        self.tell(Event.LOST)
        if self._serving.wait is not None:
            self._serving.wait.cancel()

    def eof_received(self) -> bool:
        """A client that only stopped sending still gets the answers that are due. Most have gone for good."""
        self.tell(Event.CLIENT_ENDED)
        return True

    def get_buffer(self, sizehint: int) -> memoryview:
        return _THROWN_AWAY if self.pipeline.state >= CLOSING else self.incoming.writable()

    def buffer_updated(self, nbytes: int) -> None:
        if self.pipeline.state >= CLOSING:
            return
        frames = self.incoming.received(nbytes)
        if frames:
            self.idle_sweeps = 0
            self.tell(_ARRIVED, (frames, nbytes, self.incoming.data.startswith(_PRODUCE, frames[0][0])))
        if self.incoming.fault is not None:
            self.refuse(self.incoming.fault)
        elif self.incoming.large:
            self.grew()

    def pause_writing(self) -> None:
        self.tell(Event.CONGESTED)

    def resume_writing(self) -> None:
        self.tell(Event.DRAINED)

    def swept(self) -> bool:
        """Look whether the client has done anything since the last time. True while it is owed an answer, unless that
        is on its way and the client does not read it."""
        backlog = self.socket.backlog
        if backlog != self._backlog:
            self._backlog, self.idle_sweeps = backlog, 0
        self.idle_sweeps += 1
        return self.pipeline.owes and not self.socket.behind

    def tell(self, event: Event, what: Any = None) -> None:
        """Let the pipeline take an event, and do what it asks for."""
        for action, with_what in self.pipeline.step(event, what):
            self._actions[action](with_what)

    def grew(self) -> None:
        """A large request has come on, waits, may go on, or is over."""
        incoming = self.incoming
        incoming.settle()
        self.tell(Event.GREW, Growth(incoming.waits, incoming.has_right_of_way))

    def refuse(self, error: Malformed) -> None:
        """The client sent what is no request."""
        self._service.metrics.refuse(error.reason.name)
        self.tell(Event.CLOSE)

    def fail(self, error: BaseException, what: str = "what an answer waited for failed") -> None:
        """End without an answer: where a sync failed, what was appended may or may not survive, and a lost connection
        says just that. The loop reports what is neither the disk's fault nor the socket's: a bug."""
        if isinstance(error, LogError):
            self._service.metrics.refuse(ErrorCode.KAFKA_STORAGE_ERROR.name)
        elif not isinstance(error, OSError):
            asyncio.get_running_loop().call_exception_handler({"message": what, "exception": error})
        self.tell(Event.BROKEN)

    def _all_actions(self) -> tuple[Callable[[Any], object], ...]:
        """In the order of `Do`."""
        serving, client = self._serving, self.socket
        actions: dict[Do, Callable[[Any], object]] = {
            Do.SERVE: serving.serve,
            Do.KEEP: serving.keep,
            Do.CARRY_ON: serving.carry_on,
            Do.LOOK_UP: serving.look_up,
            Do.WRITE: client.write,
            Do.DRAIN: client.drain,
            Do.LEND: client.lend,
            Do.PACE: lambda _: client.read(self.pipeline.intake.reads is ON),
            Do.DELAY: self._delay,
            Do.BEGIN_TURN: self._begin_turn,
            Do.END_TURN: self._end_turn,
            Do.HURRY: self._hurry,
            Do.REFUSE: lambda _: self.refuse(
                Malformed(MalformedReason.FRAME_BUDGET, "a request that others wait for did not come in time")
            ),
            Do.BREAK: self.fail,
            Do.STOP_READING: self._stop_reading,
            Do.CLOSE: client.close,
            Do.ABORT: client.abort,
        }
        return tuple(actions[action] for action in Do)

    def _stop_reading(self, _: None) -> None:
        self.incoming.close()
        self.idle_sweeps = 0  # a client has as long again to read what is due

    def _delay(self, _: None) -> None:
        delay_s = self._service.limits.gather_ms / 1000
        asyncio.get_running_loop().call_later(delay_s, self.tell, Event.DELAY_OVER)

    def _begin_turn(self, _: None) -> None:
        turn_s = self._service.limits.turn_ms_max / 1000
        self._turn = asyncio.get_running_loop().call_later(turn_s, self._turn_over)

    def _end_turn(self, _: None) -> None:
        assert self._turn is not None
        self._turn.cancel()
        self._turn = None

    def _turn_over(self) -> None:
        self.grew()
        self.tell(Event.TURN_OVER, self._service.budget.crowded)

    def _hurry(self, _: None) -> None:
        asyncio.get_running_loop().call_later(HALF_CLOSED_S_MAX, self.tell, Event.CLOSE)
        if self._serving.wait is not None:
            self._serving.wait.expire()
