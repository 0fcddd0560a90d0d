"""Carrying out one client's requests: those of a read where they lie, those that had to wait when their time has come.

Both take the same way; what had to wait was copied, and knows the leaders that it asked for. Produce requests gather in
a `Run` that ends with one append per partition and one answer; any other ends the run first. The pipeline hears of each
result, which says whether the next may be carried out.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from brokers.listeners.dispatch import Dispatch, Outcome
from brokers.listeners.events import ASKED, Answer, Event, Needs, Requests
from brokers.listeners.intake import ENDED
from brokers.listeners.pipeline import CLOSING, SERVING
from brokers.listeners.requests.fetch import READ_BEHIND_BYTES_MAX, READ_BYTES_MAX, Reading, Wait, session_fault
from brokers.listeners.requests.named import named
from brokers.listeners.requests.produce import Run
from brokers.listeners.requests.promised import PromisedCommits
from brokers.listeners.service import LookUp
from brokers.wire.apis import fetch as fetch_wire
from brokers.wire.apis.fetch import FetchRequest
from brokers.wire.apis.table import ApiKey
from brokers.wire.errors import ErrorCode, Malformed
from coordinators.model import TopicPartition

if TYPE_CHECKING:
    from brokers.listeners.answers import Pieces
    from brokers.listeners.connection import Connection
    from brokers.listeners.service import Service
    from brokers.replication.replica import Leadership

_PRODUCE: Final = b"\0\0"
_FETCH: Final = ApiKey.FETCH.name
_ANSWERED: Final = Event.ANSWERED
_SERVED: Final = Event.SERVED
_NOTHING: Final = Needs.TURN


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
        self._commits = PromisedCommits(self._pipeline.answers, self._tell)
        self.wait: Wait | None = None

    # --- what the pipeline asks for -----------------------------------------------------------------------

    def serve(self, frames: list[tuple[int, int]]) -> None:
        """Carry out what a read brought, where it lies."""
        requests = self._brought(frames)
        self._served(requests, self._carry_out(requests))

    def keep(self, frames: list[tuple[int, int]]) -> None:
        """Copy requests, whose bytes are gone with the next read."""
        self._served(self._brought(frames), Needs.OTHERS)

    def carry_on(self, _: None) -> None:
        """Carry out what waits, as far as it goes."""
        pipeline, needs = self._pipeline, _NOTHING
        kept = left = pipeline.next()
        while kept is not None:
            left, needs = kept, self._carry_out(kept)
            if len(kept) or not pipeline.backlog.requests or not self._finish_run():
                break
            kept = pipeline.next()
        self._served(left, needs)

    def look_up(self, kept: Requests) -> None:
        """Begin to ask for the leaders that requests need, if they need any."""
        if self._pipeline.state >= CLOSING:
            return
        wanted = named(kept, self._run)
        if len(wanted) > 1:  # if there is but one, it is the one that was not known
            known_leader = self._service.known_leader
            wanted = {at: count for at, count in wanted.items() if known_leader(at) is None}
        if wanted:
            kept.look_up = LookUp(self._service, wanted, self._looked_up)
        else:
            kept.look_up = None
            self._tell(Event.LOOKED_UP, [kept])

    # --- in order -----------------------------------------------------------------------------------------

    def _brought(self, frames: list[tuple[int, int]]) -> Requests:
        incoming = self._incoming
        return Requests(incoming.data, incoming.view, frames, incoming.alike, lent=True)

    def _carry_out(self, requests: Requests) -> Needs:
        """Begin requests in order, as far as it goes; what those that are left need."""
        run, data, view = self._run, requests.data, requests.view
        run.leaders = requests.look_up or self._service
        number = self._taken_as_row(requests)
        needs: Needs | None = None
        try:
            for start, end in requests.frames[number:]:
                produces = data.startswith(_PRODUCE, start)
                if not produces:
                    needs = self._begin(requests, start, end)
                elif not run.take(data, view, start, end):
                    needs = Needs.LEADERS
                if needs is not None:
                    break
                number += 1
                if not (produces or self._pipeline.serves):
                    break
        except Malformed as error:
            self._finish_run()
            self._connection.refuse(error)
        requests.number = number
        return needs or Needs.TURN

    def _taken_as_row(self, requests: Requests) -> int:
        """The number of the first request that is not taken with others as a row."""
        number, alike = requests.number, requests.alike
        if alike > number:
            data, (start, end) = requests.data, requests.frames[number]
            row = data.startswith(_PRODUCE, start)
            if row and self._run.take_row(data, requests.view, start, end, alike - number):
                return alike
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

    def _served(self, requests: Requests | None, needs: Needs) -> None:
        """Nothing more is carried out for now: what is left of the requests is kept, unless the connection ends."""
        incoming, pipeline = self._incoming, self._pipeline
        answer = self._run_answer()
        left = requests is not None and len(requests) > 0 and pipeline.state < CLOSING
        kept = requests.kept() if requests is not None and left else None
        self._tell(_SERVED, (answer, kept, needs))
        waits = bool(pipeline.backlog.requests)
        if waits is not incoming.kept:
            incoming.kept = waits
            if incoming.large and not waits:
                self._connection.grew()

    # --- any request --------------------------------------------------------------------------------------

    def _begin(self, requests: Requests, start: int, end: int) -> Needs | None:
        """Carry out a request that is no Produce, or say what it needs first. Raises `Malformed`."""
        if not self._finish_run():
            return Needs.TURN
        outcome: FetchRequest | Outcome | None = requests.fetches.get(start)
        if outcome is None:
            frame = bytes(requests.view[start:end])
            outcome = self._dispatch.carry_out(frame, commits=self._pipeline.commits > 0)
        if isinstance(outcome, FetchRequest):
            leaders = self._leaders_of(outcome)
            if leaders is None:
                requests.fetches[start] = outcome
                return Needs.LEADERS
            self._fetch(outcome, leaders)
        elif isinstance(outcome, Needs):
            return outcome
        else:
            self._pass_on(*outcome)
        return None

    def _pass_on(self, event: Event, what: Any) -> None:
        """Tell what came of a request."""
        if event is _ANSWERED:
            self._tell(event, Answer(what))
        elif event is Event.PROMISED:
            self._commits.add(what)
        else:
            self._tell(event)
            self._connection.spawn(what).add_done_callback(self._unblocked)

    def _promise(self, pieces: asyncio.Future[Pieces]) -> None:
        """Answer once that is known, and let others pass."""
        answer = Answer()
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

    def _leaders_of(self, request: FetchRequest) -> list[Leadership | ErrorCode] | None:
        known_leader = self._run.leaders.known_leader
        known = [known_leader(TopicPartition(part.topic, part.partition)) for part in request.parts]
        return None if None in known else cast("list[Leadership | ErrorCode]", known)

    def _fetch(self, request: FetchRequest, leaders: list[Leadership | ErrorCode]) -> None:
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

    def _fetched(self, reading: Reading) -> None:
        self.wait = None
        self._tell(_ANSWERED, Answer(reading.answer(), lent=reading.lent))

    # --- looking up ---------------------------------------------------------------------------------------

    def _looked_up(self) -> None:
        """All that can be begun now are told of together."""
        ready: list[Requests] = []
        for kept in self._pipeline.backlog.requests:
            look_up = kept.look_up
            if kept.leaders is ASKED and (look_up is None or not look_up.over):
                break
            if look_up is not None and look_up.fault is not None:
                self._connection.fail(look_up.fault, "a look-up failed")
                return
            ready.append(kept)
        if ready:
            self._tell(Event.LOOKED_UP, ready)
