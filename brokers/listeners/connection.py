"""One client's connection: requests are carried out in the order in which they came, and answered in the same.

Everything that a read brings is worked off at once, in place, without a task: produce requests gather in a `Run` that
ends with one append per partition and one write to the socket. What cannot be finished at once stops this:

- a request whose leaders must be looked up is copied and its look-up begins, as do those of all that follow it; they
  are carried out in order as the answers come in;
- a fetch that waits, or a request that the coordination layer has to answer, *blocks*: what follows waits, copied;
- commits of one partition each are on the path of consumed messages: they go side by side, produce requests and
  fetches pass, and everything else that follows waits until all are over;
- appends that wait for the disk let what follows be carried out, but not be answered before them.

Bounds: when too many requests wait here, or too many bytes that the client does not read, or a large request for its
turn (`wire/budget.py`), the socket is read no further until it has become better. Nor is it for a moment while requests
gather (`read_delay.py`).

`get_buffer` must neither close nor pause: uvloop calls it in the middle of a read, and would write to what is gone.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, Final, cast

from brokers.listeners.answers import Answers, Pieces
from brokers.listeners.large_requests import Turn
from brokers.listeners.read_delay import Gathering
from brokers.listeners.requests.commit import commit_one
from brokers.listeners.requests.fetch import READ_BEHIND_BYTES_MAX, READ_BYTES_MAX, Reading, Wait, session_fault
from brokers.listeners.requests.produce import Run
from brokers.listeners.requests.table import HANDLERS
from brokers.listeners.service import Caller, Found, Leaders, LookUp
from brokers.log.errors import LogError
from brokers.wire.apis import fetch as fetch_wire
from brokers.wire.apis.fetch import FetchRequest
from brokers.wire.apis.offsets import CommitTemplate, SingleCommit, is_of_one_partition
from brokers.wire.apis.table import Api, ApiKey
from brokers.wire.errors import ErrorCode, Malformed
from brokers.wire.framing import ReceiveBuffer
from brokers.wire.header import RequestHeader, answer, read_body, read_request, version_list
from coordinators.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from brokers.listeners.connections import Connections
    from brokers.listeners.service import Service

HALF_CLOSED_S_MAX: Final = 2.0
_PRODUCE: Final = b"\0\0"
# What a client sends while its last answers leave. Were it left unread, the close would reset the connection.
_THROWN_AWAY: Final = memoryview(bytearray(16 * 1024))


class Progress(Enum):
    """How carrying out a request ended: answered (or to be), blocking the others, or not begun, for it needs a look-up
    first, or the end of the commits before it."""

    DONE = 0
    BLOCKED = 1
    LOOK_UP = 2
    NOT_YET = 3


_NOT_BEGUN: Final = frozenset({Progress.LOOK_UP, Progress.NOT_YET})


class Waiting:
    """A request that could not be carried out at once, copied; what is read of it already, where it is a fetch; and its
    leaders where they are being looked up."""

    __slots__ = ("fetch", "frame", "leaders")

    def __init__(self, frame: bytearray, fetch: FetchRequest | None) -> None:
        self.frame = frame
        self.fetch = fetch
        self.leaders: LookUp | None = None


class Connection(asyncio.BufferedProtocol):
    """See the module. `connections` is told of its beginning and end, and holds its tasks."""

    def __init__(self, service: Service, connections: Connections) -> None:
        self._service = service
        self._connections = connections
        self._incoming = ReceiveBuffer(service.limits.frames, service.budget, self._large_request)
        self._run = Run(service)
        self._gathering = Gathering(service.limits.gather_ms, self._pace)
        self._waiting: deque[Waiting] = deque()
        self._waiting_bytes = 0
        self._commits = 0
        self._commit_template: CommitTemplate | None = None
        self._wait: Wait | None = None
        self._turn = Turn(service, self._incoming, self._refuse)
        self._backlog = (0, 0)
        self._blocked = False
        self._looks_up = False
        self._reading_paused = False
        self._writing_paused = False
        self._half_closed = False
        self._closed = False
        self.idle_sweeps = 0
        self.host = ""

    @property
    def busy(self) -> bool:
        """Whether a request has not been answered yet."""
        return bool(self._blocked or self._waiting or self._answers)

    # --- the socket's side --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        limits = self._service.limits
        self._answers = Answers(self._transport, limits.unsent_bytes_max, self._lost, self._carry_on)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.send_buffer_bytes)
        peer = transport.get_extra_info("peername")
        self.host = str(peer[0]) if peer else ""
        if not self._connections.admit(self):
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        self._connections.forget(self)
        self._incoming.close()
        if self._wait is not None:
            self._wait.cancel()
        self._turn.end()
        self._answers.drop()
        self._waiting.clear()

    def eof_received(self) -> bool:
        """A client that only stopped sending still gets the answers that are due; `_pace` closes after them. Most have
        gone for good, so a fetch waits no longer, and nothing else does for long."""
        self._half_closed = True
        if self._wait is not None:
            self._wait.expire()
        if self.busy:
            asyncio.get_running_loop().call_later(HALF_CLOSED_S_MAX, self.close)
        return self.busy

    def get_buffer(self, sizehint: int) -> memoryview:
        return _THROWN_AWAY if self._closed else self._incoming.writable()

    def buffer_updated(self, nbytes: int) -> None:
        if self._closed:
            return
        frames = self._incoming.received(nbytes)
        try:
            if frames:
                self.idle_sweeps = 0
                produces = self._incoming.data.startswith(_PRODUCE, frames[0][0])
                self._serve(frames)
                if produces:
                    self._gathering.after(len(frames), nbytes)
            if self._incoming.fault is not None:
                raise self._incoming.fault
        except Malformed as error:
            self._refuse(error)
            return
        if self._incoming.large:
            self._large_request()

    def pause_writing(self) -> None:
        self._writing_paused = True
        self._pace()

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._answers.drained()
        self._carry_on()

    def rest(self) -> None:
        """Hold no more than a quiet client needs."""
        self._incoming.give_back()

    def swept(self) -> bool:
        """Look whether the client has done anything since the last time. True while it is owed an answer, unless that
        is on its way and the client does not read it."""
        backlog = self._answers.backlog
        if backlog != self._backlog:
            self._backlog, self.idle_sweeps = backlog, 0
        self.idle_sweeps += 1
        return self.busy and not self._answers.behind

    def close(self) -> None:
        """Send what is due and end."""
        if not self._closed:
            self._closed = True
            self.idle_sweeps = 0
            self._turn.end()
            self._incoming.close()
            self._answers.end()

    def end_idle(self) -> None:
        """The same; who was told so before and does not read what is due gets no more of it."""
        if self._closed:
            self._transport.abort()
        else:
            self.close()

    def _lost(self, error: BaseException) -> None:
        """Where a sync failed, what was appended may or may not survive: a lost connection says just that."""
        self._break("what an answer waited for failed", error)

    def _break(self, what: str, error: BaseException) -> None:
        """End without an answer; the loop reports what is neither the disk's fault nor the socket's: a bug."""
        if isinstance(error, LogError):
            self._service.metrics.refuse(ErrorCode.KAFKA_STORAGE_ERROR.name)
        elif not isinstance(error, OSError):
            asyncio.get_running_loop().call_exception_handler({"message": what, "exception": error})
        self._closed = True
        self._answers.drop()
        self._transport.abort()

    def _refuse(self, error: Malformed) -> None:
        self._service.metrics.refuse(error.reason.name)
        self.close()

    # --- carrying out, in place ---------------------------------------------------------------------------

    def _serve(self, frames: list[tuple[int, int]]) -> None:
        """Carry out what a read brought, or from the first request on that has to wait let all the rest wait."""
        number, unserved = 0, None
        if not (self._looks_up or self._blocked or self._waiting or self._answers.full):
            number, unserved = self._serve_in_place(frames)
        if number < len(frames) and not self._closed:
            self._let_wait(frames[number:], unserved)
            self._carry_on()

    def _serve_in_place(self, frames: list[tuple[int, int]]) -> tuple[int, FetchRequest | None]:
        """How many of `frames` were carried out, and the fetch that comes next if it waits for a look-up."""
        data, view, run = self._incoming.data, self._incoming.view, self._run
        take, alike = run.take, self._incoming.alike
        number = 0
        try:
            if alike and data.startswith(_PRODUCE, frames[0][0]) and run.take_row(data, view, *frames[0], alike):
                number = alike
            for start, end in frames[number:]:
                if data.startswith(_PRODUCE, start):
                    if not take(data, view, start, end):
                        self._looks_up = True
                        return number, None
                else:
                    self._finish_run()
                    progress = self._handle(bytes(view[start:end]), None)
                    if isinstance(progress, FetchRequest):
                        return number, progress
                    if progress is not Progress.DONE:
                        return number + (progress is Progress.BLOCKED), None
                number += 1
        finally:
            self._finish_run()
        return number, None

    def _finish_run(self) -> None:
        """Append what the produce requests brought, and answer them."""
        if not self._run:
            return
        answers = self._run.finish()
        if self._run.failed:
            self.close()
            return
        for found in answers:
            if isinstance(found, bytes):
                self._answers.send([found])
            else:
                self._answers.send_later(found)

    def _handle(self, frame: bytes, leaders: Leaders | None) -> Progress | FetchRequest:
        """Carry out any other request; hand a fetch back whose leaders must be looked up first. Raises `Malformed`."""
        if self._commit_template is not None and (commit := self._commit_template.read(frame)) is not None:
            return self._commit_one(self._commit_template, commit)
        header, api, at = read_request(frame)
        if api.key is ApiKey.FETCH:
            request = fetch_wire.read(frame, at, header.version, header.correlation_id)
            return self._fetch_or_ask(request, leaders)
        if self._commits and api.key is not ApiKey.OFFSET_COMMIT:
            return Progress.NOT_YET
        if api.key is ApiKey.API_VERSIONS:
            self._service.metrics.kafka.add(api.key.name)
            if header.version <= api.version_max:
                read_body(header, api, frame, at)
            self._answers.send([version_list(header, api)])
            return self._room()
        message = read_body(header, api, frame, at)
        if api.key is ApiKey.OFFSET_COMMIT and is_of_one_partition(message):
            template = self._commit_template = CommitTemplate(frame, header.version, message)
            return self._commit_one(template, cast("SingleCommit", template.read(frame)))
        if self._commits:
            return Progress.NOT_YET
        self._service.metrics.kafka.add(api.key.name)
        result = HANDLERS[api.key](self._service, Caller(header.client_id, self.host, header.version), message)
        if not asyncio.iscoroutine(result):
            self._answers.send([answer(header, api, result)])
            return self._room()
        self._blocked = True
        task = self._connections.spawn(result)
        task.add_done_callback(lambda done: self._answered(header, api, done))
        return Progress.BLOCKED

    def _commit_one(self, template: CommitTemplate, commit: SingleCommit) -> Progress:
        self._service.metrics.kafka.add(ApiKey.OFFSET_COMMIT.name)
        outcome = commit_one(self._service, template, commit)
        if isinstance(outcome, ErrorCode):
            self._answers.send([template.answer(commit, outcome)])
        else:
            self._commits += 1
            kept = self._connections.spawn(_answer(template, commit, outcome))
            self._answers.send_later(kept)
            kept.add_done_callback(self._committed)
        return self._room()

    def _committed(self, _: object) -> None:
        self._commits -= 1
        if not self._commits:
            self._carry_on()

    def _answered(self, header: RequestHeader, api: Api, done: asyncio.Task[object]) -> None:
        """What blocked is over. A handler that raised is a bug: the loop reports it, and the connection ends."""
        self._blocked = False
        if done.cancelled() or self._closed:
            self._transport.abort()
            return
        error = done.exception()
        if error is not None:
            self._break(f"{api.key.name} {header.version} failed", error)
            return
        self._answers.send([answer(header, api, done.result())])
        self._carry_on()

    # --- fetching -----------------------------------------------------------------------------------------

    def _fetch_or_ask(self, request: FetchRequest, leaders: Leaders | None) -> Progress | FetchRequest:
        progress = self._fetch(request, leaders)
        return request if progress is Progress.LOOK_UP else progress

    def _fetch(self, request: FetchRequest, leaders: Leaders | None) -> Progress:
        if leaders is None:
            leaders = self._known_leaders(request)
            if leaders is None:
                self._looks_up = True
                return Progress.LOOK_UP
        self._service.metrics.kafka.add(ApiKey.FETCH.name)
        fault = session_fault(request)
        if fault is not ErrorCode.NONE:
            self._answers.send([fetch_wire.refusal(request, fault)])
            return self._room()
        read_bytes_max = READ_BEHIND_BYTES_MAX if self._answers.behind else READ_BYTES_MAX
        reading = Reading(self._service, request, leaders, read_bytes_max=read_bytes_max)
        if reading.read() or request.wait_ms_max <= 0 or self._half_closed:
            return self._answer_fetch(reading)
        self._blocked = True
        self._wait = Wait(reading, min(request.wait_ms_max, self._service.limits.fetch_wait_ms_max), self._fetched)
        return Progress.BLOCKED

    def _known_leaders(self, request: FetchRequest) -> Leaders | None:
        known = [self._service.known_leader(TopicPartition(part.topic, part.partition)) for part in request.parts]
        return None if None in known else cast("Leaders", known)

    def _fetched(self, reading: Reading) -> None:
        self._blocked, self._wait = False, None
        if self._answer_fetch(reading) is Progress.DONE:
            self._carry_on()

    def _answer_fetch(self, reading: Reading) -> Progress:
        """Send what was read."""
        self._answers.send(reading.answer(), lent=reading.lent)
        return self._room()

    # --- carrying out later -------------------------------------------------------------------------------

    def _let_wait(self, frames: list[tuple[int, int]], first: FetchRequest | None) -> None:
        """Copy requests, whose bytes are gone with the next read, and begin the look-ups that they need. `first` is
        what the first of them holds, if that was read already."""
        view = self._incoming.view
        for start, end in frames:
            waiting = Waiting(bytearray(view[start:end]), first)
            first = None
            if self._looks_up:
                self._look_up(waiting)
            self._waiting.append(waiting)
            self._waiting_bytes += len(waiting.frame)
        self._incoming.kept = True
        self._pace()

    def _look_up(self, waiting: Waiting) -> None:
        """Begin to ask for the leaders that a request needs, if it needs any. Raises `Malformed`."""
        if waiting.frame.startswith(_PRODUCE):
            wanted = self._run.partitions(waiting.frame, 0, len(waiting.frame))
        else:
            if waiting.fetch is None:
                waiting.fetch = _read_fetch(bytes(waiting.frame))
            if waiting.fetch is None:
                return
            wanted = [TopicPartition(part.topic, part.partition) for part in waiting.fetch.parts]
        waiting.leaders = LookUp(self._service, wanted, self._connections.spawn)
        waiting.leaders.answer.add_done_callback(self._looked_up)

    def _looked_up(self, done: asyncio.Task[Found]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            self._break("a look-up failed", error)
        self._carry_on()

    def _carry_on(self) -> None:
        """Carry out what waits, as far as it goes."""
        try:
            while self._waiting and not (self._blocked or self._answers.full or self._closed):
                waiting = self._waiting[0]
                if waiting.leaders is not None and not waiting.leaders.answer.done():
                    break
                progress = self._carry_out(waiting)
                if progress is Progress.LOOK_UP:
                    self._look_up(waiting)
                if progress in _NOT_BEGUN:
                    break
                self._waiting.popleft()
                self._waiting_bytes -= len(waiting.frame)
        except Malformed as error:
            self._refuse(error)
        finally:
            self._finish_run()
        if not self._waiting:
            self._looks_up = False  # what was unknown may be known by now
            self._incoming.kept = False
            if self._incoming.large and not self._closed:
                self._large_request()
        self._pace()

    def _carry_out(self, waiting: Waiting) -> Progress:
        """Raises `Malformed`."""
        leaders = None
        if waiting.leaders is not None and (leaders := waiting.leaders.worth()) is None:
            return Progress.LOOK_UP
        frame = waiting.frame
        if frame.startswith(_PRODUCE):
            taken = self._run.take(frame, memoryview(frame), 0, len(frame), leaders)
            return Progress.DONE if taken else Progress.LOOK_UP
        self._finish_run()
        if waiting.fetch is not None:
            return self._fetch(waiting.fetch, leaders)
        progress = self._handle(bytes(frame), leaders)
        if isinstance(progress, FetchRequest):
            waiting.fetch, progress = progress, Progress.LOOK_UP
        return progress

    # --- pace ---------------------------------------------------------------------------------------------

    def _room(self) -> Progress:
        """Blocks the next request while the client does not read its answers."""
        return Progress.BLOCKED if self._answers.full or self._closed else Progress.DONE

    def _large_request(self) -> None:
        """It goes on, or waits for its turn, or is over."""
        self._turn.look()
        self._pace()

    def _pace(self) -> None:
        """Read from the socket only while there is room for what it brings; end a half-closed connection when idle."""
        if self._closed:
            return
        if self._half_closed:
            if not self.busy:
                self.close()
            return
        limits = self._service.limits
        full = (
            self._writing_paused
            or self._gathering.under_way
            or self._incoming.waits
            or len(self._waiting) + len(self._answers) > limits.requests_in_flight_max
            or self._waiting_bytes > (limits.waiting_bytes_max if self._looks_up else limits.unsent_bytes_max)
        )
        if full is not self._reading_paused:
            self._reading_paused = full
            if full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()


async def _answer(template: CommitTemplate, commit: SingleCommit, outcome: Awaitable[ErrorCode]) -> Pieces:
    return [template.answer(commit, await outcome)]


def _read_fetch(frame: bytes) -> FetchRequest | None:
    """None for any other request. Raises `Malformed`."""
    header, api, at = read_request(frame)
    return fetch_wire.read(frame, at, header.version, header.correlation_id) if api.key is ApiKey.FETCH else None
