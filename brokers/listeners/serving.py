"""Carrying out one client's requests: those of a read in place, those that had to wait when their time has come.

Produce requests gather in a `Run` that ends with one append per partition and one answer; any other ends the run first.
The pipeline hears of each result, which says whether the next may be carried out.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Final, cast

from brokers.listeners.dispatch import Dispatch, read_fetch
from brokers.listeners.events import ASKED, Answer, Event, Kept
from brokers.listeners.intake import ENDED
from brokers.listeners.pipeline import CLOSING, SERVING
from brokers.listeners.requests.fetch import READ_BEHIND_BYTES_MAX, READ_BYTES_MAX, Reading, Wait, session_fault
from brokers.listeners.requests.produce import Run
from brokers.listeners.service import Found, Leaders, LookUp
from brokers.wire.apis import fetch as fetch_wire
from brokers.wire.apis.fetch import FetchRequest
from brokers.wire.apis.table import ApiKey
from brokers.wire.errors import ErrorCode, Malformed
from coordinators.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brokers.listeners.answers import Pieces
    from brokers.listeners.connection import Connection
    from brokers.listeners.service import Service

_PRODUCE: Final = b"\0\0"
_FETCH: Final = ApiKey.FETCH.name
_ANSWERED: Final = Event.ANSWERED
_SERVED: Final = Event.SERVED


class Serving:
    """Serving of one `connection`. `wait` is a fetch that waits."""

    def __init__(self, service: Service, connection: Connection) -> None:
        self._service = service
        self._connection = connection
        self._pipeline = connection.pipeline
        self._incoming = connection.incoming
        self._tell = connection.tell
        self._run = Run(service)
        self._dispatch = Dispatch(service, connection.host)
        self.wait: Wait | None = None

    # --- what the pipeline asks for -----------------------------------------------------------------------

    def serve(self, frames: list[tuple[int, int]]) -> None:
        """Carry out what a read brought, in place; copy what may not be begun yet."""
        try:
            number = self._serve_in_place(frames)
        except Malformed as error:
            self._finish_run()
            self._connection.refuse(error)
            number = len(frames)
        if number < len(frames):
            self.keep(frames[number:])
        else:
            self._served(())

    def keep(self, frames: list[tuple[int, int]]) -> None:
        """Copy requests, whose bytes are gone with the next read."""
        view = self._incoming.view
        self._served([Kept(bytearray(view[start:end])) for start, end in frames])

    def carry_on(self, _: None) -> None:
        """Carry out what waits, as far as it goes."""
        try:
            while (kept := self._pipeline.next()) is not None:
                self._carry_out_kept(kept)
        except Malformed as error:
            self._finish_run()
            self._connection.refuse(error)
        self._served(())

    def look_up(self, kept: Kept) -> None:
        """Begin to ask for the leaders that a request needs, if it needs any."""
        if self._pipeline.state >= CLOSING:
            return
        try:
            wanted = self._wanted(kept)
        except Malformed as error:
            self._connection.refuse(error)
            return
        if wanted is None:
            self._tell(Event.LOOKED_UP, [kept])
        else:
            kept.look_up = LookUp(self._service, wanted, self._connection.spawn)
            kept.look_up.answer.add_done_callback(self._looked_up)

    # --- in place -----------------------------------------------------------------------------------------

    def _serve_in_place(self, frames: list[tuple[int, int]]) -> int:
        """How many of `frames` were carried out, or are waited for."""
        data, view, run, pipeline = self._incoming.data, self._incoming.view, self._run, self._pipeline
        take, alike = run.take, self._incoming.alike
        number = 0
        if alike and data.startswith(_PRODUCE, frames[0][0]) and run.take_row(data, view, *frames[0], alike):
            number = alike
        for start, end in frames[number:]:
            number += 1
            if data.startswith(_PRODUCE, start):
                if take(data, view, start, end):
                    continue
                if not self._finish_run():
                    return number - 1
                self._tell(Event.NEEDS_LEADERS, Kept(bytearray(view[start:end])))
            elif not self._finish_run():
                return number - 1
            else:
                self._carry_out(bytes(view[start:end]), None, None)
            if not pipeline.serves:
                break
        return number

    def _finish_run(self) -> bool:
        """Append what the produce requests brought, and answer them; whether to go on."""
        if (answer := self._run_answer()) is not None:
            self._tell(_ANSWERED, answer)
        return self._pipeline.state is SERVING

    def _run_answer(self) -> Answer | None:
        """End the run, and tell of its answers; the last is returned instead where it is known."""
        if not self._run:
            return None
        answers = self._run.finish()
        if self._run.failed:
            self._tell(Event.CLOSE)
            return None
        last: Answer | None = None
        for found in answers:
            if last is not None:
                self._tell(_ANSWERED, last)
            if isinstance(found, bytes):
                last = Answer([found])
            else:
                last = None
                self._promise(found)
        return last

    def _served(self, rest: Sequence[Kept]) -> None:
        """Nothing more is carried out for now."""
        self._tell(_SERVED, (self._run_answer(), rest))
        waits = bool(self._pipeline.backlog.requests)
        if waits is not self._incoming.kept:
            self._incoming.kept = waits
            if not waits:
                self._connection.grew()

    # --- any request --------------------------------------------------------------------------------------

    def _carry_out(self, frame: bytes, kept: Kept | None, leaders: Leaders | None) -> None:
        """Carry out a request that is no Produce. Raises `Malformed`."""
        outcome = (kept and kept.fetch) or self._dispatch.carry_out(frame, commits=self._pipeline.commits > 0)
        if isinstance(outcome, FetchRequest):
            if leaders is not None or (leaders := self._known_leaders(outcome)) is not None:
                self._fetch(outcome, leaders)
            else:
                kept = kept or Kept(bytearray(frame))
                kept.fetch = outcome
                self._tell(Event.NEEDS_LEADERS, kept)
            return
        event, what = outcome
        if event is _ANSWERED:
            self._tell(event, Answer(what))
        elif event is Event.PROMISED:
            self._promise(self._connection.spawn(what), commits=True)
        elif event is Event.BLOCKED:
            self._tell(event)
            self._connection.spawn(what).add_done_callback(self._unblocked)
        else:
            self._tell(event, kept or Kept(bytearray(frame)))

    def _promise(self, pieces: asyncio.Future[Pieces], *, commits: bool = False) -> None:
        """Answer once that is known, and let others pass."""
        answer = Answer(commits=commits)
        pieces.add_done_callback(partial(self._known, answer))
        self._tell(Event.PROMISED, answer)

    def _known(self, answer: Answer, done: asyncio.Future[Pieces]) -> None:
        answer.error = None if done.cancelled() else done.exception()
        if answer.error is None:
            answer.pieces = [] if done.cancelled() else done.result()
        self._tell(Event.KNOWN, answer)

    def _unblocked(self, done: asyncio.Task[Pieces]) -> None:
        """The blocker is over. A handler that raised is a bug: the loop reports it, and the connection ends."""
        if done.cancelled():
            self._tell(Event.BROKEN)
        elif (error := done.exception()) is not None:
            self._connection.fail(error, "a request failed")
        else:
            self._tell(_ANSWERED, Answer(done.result()))

    # --- fetching -----------------------------------------------------------------------------------------

    def _fetch(self, request: FetchRequest, leaders: Leaders) -> None:
        self._service.metrics.kafka.add(_FETCH)
        fault = session_fault(request)
        if fault is not ErrorCode.NONE:
            self._tell(_ANSWERED, Answer([fetch_wire.refusal(request, fault)]))
            return
        read_bytes_max = READ_BEHIND_BYTES_MAX if self._connection.socket.behind else READ_BYTES_MAX
        reading = Reading(self._service, request, leaders, read_bytes_max=read_bytes_max)
        if reading.read() or request.wait_ms_max <= 0 or self._pipeline.intake.reads is ENDED:
            self._fetched(reading)
        else:
            self._tell(Event.BLOCKED)
            wait_ms = min(request.wait_ms_max, self._service.limits.fetch_wait_ms_max)
            self.wait = Wait(reading, wait_ms, self._fetched)

    def _known_leaders(self, request: FetchRequest) -> Leaders | None:
        known = [self._service.known_leader(TopicPartition(part.topic, part.partition)) for part in request.parts]
        return None if None in known else cast("Leaders", known)

    def _fetched(self, reading: Reading) -> None:
        self.wait = None
        self._tell(_ANSWERED, Answer(reading.answer(), lent=reading.lent))

    # --- what waited --------------------------------------------------------------------------------------

    def _carry_out_kept(self, kept: Kept) -> None:
        """Raises `Malformed`."""
        leaders = None if kept.look_up is None else kept.look_up.worth()
        frame = kept.frame
        if kept.look_up is None or leaders is not None:
            if not frame.startswith(_PRODUCE):
                if self._finish_run():
                    self._carry_out(bytes(frame), kept, leaders)
                return
            if self._run.take(frame, memoryview(frame), 0, len(frame), leaders):
                return
        if self._finish_run():
            self._tell(Event.NEEDS_LEADERS, kept)

    def _wanted(self, kept: Kept) -> list[TopicPartition] | None:
        """The partitions that a request names, if their leaders matter to it. Raises `Malformed`."""
        frame = kept.frame
        if frame.startswith(_PRODUCE):
            return self._run.partitions(frame, 0, len(frame))
        if kept.fetch is None:
            kept.fetch = read_fetch(bytes(frame))
        return kept.fetch and [TopicPartition(part.topic, part.partition) for part in kept.fetch.parts]

    def _looked_up(self, done: asyncio.Task[Found]) -> None:
        """All that can be begun now are told of together, so that their appends are one."""
        if not done.cancelled() and (error := done.exception()) is not None:
            self._connection.fail(error, "a look-up failed")
        elif requests := list(takewhile(_is_looked_up, self._pipeline.backlog.requests)):
            self._tell(Event.LOOKED_UP, requests)


def _is_looked_up(kept: Kept) -> bool:
    return kept.look_up.answer.done() if kept.look_up is not None else kept.leaders is not ASKED
