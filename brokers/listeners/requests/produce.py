"""The produce requests of one socket read: checked one by one, appended per partition in one write, answered in order.

This is the hot path, and `Run.take` is its inner loop: unrolled on purpose (`make bench`, 8 B x 1). A `Route`
keeps the common part of one producer's requests to one partition, so that a request costs a comparison of its
constant bytes, the check of its batch, and little else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from brokers.listeners.requests.targets import Irregular, Route, Target, Together
from brokers.listeners.requests.unacknowledged import add_answer
from brokers.listeners.service import REFUSALS, code_of
from brokers.log.errors import SequenceError
from brokers.replication.errors import TooFewInSync
from brokers.wire.apis import produce as wire
from brokers.wire.apis.produce import CORRELATION_AT, CORRELATION_END, Outcome, ProduceRequest
from brokers.wire.batch import BatchError, check_produced
from brokers.wire.errors import ErrorCode
from brokers.wire.framing import SIZE_BYTES
from coordinators.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brokers.listeners.requests.targets import Asked
    from brokers.listeners.requests.unacknowledged import Answer, Answers, Codes, Unacknowledged, Waits
    from brokers.listeners.service import Leaders, Service

_ROUTES_MAX: Final = 1024
_ACKS_ALLOWED: Final = frozenset({-1, 0, 1})


class Run:
    """One connection's, used again for each read: `take` requests, then `finish`. `leaders` answers for partitions.

    A place says where a batch's result will be: its number among its target's, or an error's number negated.
    """

    __slots__ = (
        "_asked",
        "_batch_bytes_max",
        "_begun",
        "_key_ends",
        "_last",
        "_routes",
        "_service",
        "_targets",
        "failed",
        "leaders",
    )

    def __init__(self, service: Service) -> None:
        self._service = service
        self.leaders: Leaders = service
        self._last: Route | None = None
        self._routes: dict[bytes, Route] = {}
        self._key_ends: tuple[int, ...] = ()
        self._targets: dict[TopicPartition, Target] = {}
        self._begun: list[Target] = []
        self._asked: list[tuple[Asked, int, int]] = []
        self._batch_bytes_max = service.limits.batch_bytes_max
        self.failed = False

    def __bool__(self) -> bool:
        return bool(self._asked or self._begun)

    def take(self, data: bytearray, view: memoryview, start: int, end: int) -> bool:
        """Take the request that lies in `data[start:end]`; False if its leaders must be looked up first.

        `view` is of `data`, which must stay as it is until `finish`. Raises `Malformed`.
        """
        route = self._last
        if route is None or not (
            data.startswith(route.key, start + CORRELATION_END) and data.startswith(route.head, start)
        ):
            route = self._last = self._other(view, start)
            if route is None:
                return self._take_irregular(data, view, start, end)
        at = start + route.records_at
        if at > end:
            return self._take_irregular(data, view, start, end)
        correlation_id, size = route.fields(data, start + CORRELATION_AT)
        if at + size != end:
            return self._take_irregular(data, view, start, end)
        target = route.target
        if not target.begun and not self._begin(target):
            return False
        refusal = target.error_all if route.acks < 0 else target.error
        if refusal:
            place = -refusal
        else:
            batch = view[at:end]
            try:
                header = check_produced(batch, self._batch_bytes_max)
            except BatchError as error:
                place = self._refused(error)
            else:
                place = len(target.batches)
                target.batches.append((batch, header))
        self._asked.append((route, correlation_id, place))
        return True

    def take_row(self, data: bytearray, view: memoryview, start: int, end: int, count: int) -> bool:
        """Begin with as many requests as `count`, the first in `data[start:end]` and all of its size. False where they
        have to be taken one by one."""
        assert not self._asked
        route = self.route_of_row(data, view, start, end, count)
        if route is None:
            return False
        self._last = route
        target = route.target
        if not self._begin(target) or (target.error_all if route.acks < 0 else target.error):
            return False
        row = route.row(view, start, end, count, self._batch_bytes_max)
        if row is None:
            return False
        target.together = Together(route, row)
        self._asked.append((target.together, 0, 0))
        return True

    def route(self, data: bytearray, view: memoryview, start: int) -> Route | None:
        """The way that a request goes, if it is like one before."""
        last = self._last
        fits = last is not None and data.startswith(last.key, start + CORRELATION_END)
        return last if last is not None and fits and data.startswith(last.head, start) else self._other(view, start)

    def route_of_row(self, data: bytearray, view: memoryview, start: int, end: int, count: int) -> Route | None:
        """The route of `count` requests, as far as the first and the last of them tell."""
        route = self.route(data, view, start)
        last = start + (count - 1) * (end - start + SIZE_BYTES)
        return route if route is not None and data.startswith(route.key, last + CORRELATION_END) else None

    def finish(self) -> Answers:
        """Append everything: the answers, in the order of the requests."""
        waits = False
        for target in self._begun:
            if target.batches or target.together is not None:
                self._append(target)
                waits = waits or target.waits is not None
        answers: Answers = self._answers_later() if waits else self._answers()
        for target in self._begun:
            target.begun, target.together, target.batches, target.waits = False, None, [], None
        self._begun, self._asked = [], []
        if len(self._routes) > _ROUTES_MAX or len(self._targets) > _ROUTES_MAX:
            self._last, self._routes, self._key_ends, self._targets = None, {}, (), {}
        return answers

    # --- taking -------------------------------------------------------------------------------------------

    def _other(self, view: memoryview, start: int) -> Route | None:
        """The route of a request, which is not the last one."""
        for key_end in self._key_ends:
            route = self._routes.get(
                bytes(view[start : start + 4]) + bytes(view[start + CORRELATION_END : start + key_end])
            )
            if route is not None:
                return route
        return None

    def _begin(self, target: Target) -> bool:
        """Find out whether this broker may append to `target`; False if somebody else must be asked."""
        leader = self.leaders.known_leader(target.at)
        if leader is None:
            return False
        if not target.begun:
            target.begun, target.failed = True, ErrorCode.NONE
            self._begun.append(target)
        if isinstance(leader, ErrorCode):
            target.error = target.error_all = leader
            return True
        target.leadership, target.error, target.error_all = leader, ErrorCode.NONE, ErrorCode.NONE
        try:
            leader.check_in_sync(self._service.defaults.min_insync_replicas)
        except TooFewInSync as error:
            target.error_all = code_of(error)
        return True

    def _place(self, target: Target, batch: memoryview, acks: int) -> int:
        """What `take` does with a batch, for requests that are no route's."""
        refusal = target.error_all if acks < 0 else target.error
        if refusal:
            return -refusal
        try:
            header = check_produced(batch, self._batch_bytes_max)
        except BatchError as error:
            return self._refused(error)
        target.batches.append((batch, header))
        return len(target.batches) - 1

    def _refused(self, error: BatchError) -> int:
        self._service.metrics.refuse(error.kafka_error)
        return -ErrorCode[error.kafka_error]

    def _take_irregular(self, data: bytearray, view: memoryview, start: int, end: int) -> bool:
        request = wire.read(data, start, end)
        targets = [self._target(TopicPartition(part.topic, part.partition)) for part in request.parts]
        refusal = _refusal(request)
        if refusal is ErrorCode.NONE and not all(target.begun or self._begin(target) for target in targets):
            return False
        if refusal is ErrorCode.NONE and wire.fits_template(request):
            self._add_route(Route(data, start, request, targets[0]))
        places = [
            (target, -refusal or self._place(target, view[part.start : part.end], request.acks))
            for target, part in zip(targets, request.parts, strict=True)
        ]
        self._asked.append((Irregular(request, places), request.correlation_id, 0))
        return True

    def _target(self, at: TopicPartition) -> Target:
        target = self._targets.get(at)
        if target is None:
            target = self._targets[at] = Target(at)
        return target

    def _add_route(self, route: Route) -> None:
        self._routes[route.head + route.key] = self._last = route
        key_end = route.records_at - 4
        if key_end not in self._key_ends:
            self._key_ends = (*self._key_ends, key_end)

    # --- finishing ----------------------------------------------------------------------------------------

    def _append(self, target: Target) -> None:
        leadership, together = target.leadership, target.together
        assert leadership is not None
        replica = leadership.replica
        before = replica.log.end_offset
        stored_bytes = 0
        if together is not None:
            try:
                together.offsets = replica.append_row(together.row, leadership)
                stored_bytes = len(together.row.timestamps) * together.row.header.size
            except REFUSALS as error:
                together.error = code_of(error)
        if target.batches:
            try:
                target.results = replica.append(target.batches, leadership)
                stored_bytes += sum([len(batch) for batch, _ in target.batches])
            except REFUSALS as error:
                target.failed = code_of(error)
        if not stored_bytes:
            return
        target.start_offset = replica.start_offset
        produced = self._service.metrics.produce
        produced.messages += replica.log.end_offset - before
        produced.bytes += stored_bytes
        if replica.waits_for_the_disk:
            target.waits = {}

    def _answers(self) -> Answers:
        """Where nothing has to be waited for; unrolled, for that is the hot path."""
        produced = self._service.metrics.produce
        produced.requests += len(self._asked)
        answers: list[bytes] = []
        for what, correlation_id, place in self._asked:
            if isinstance(what, Together):
                produced.requests += len(what.row.correlation_ids) - 1
                answers.append(what.answers())
                continue
            if isinstance(what, Irregular):
                answers.append(self._answer_irregular(what)[1]({}))
                continue
            target = what.target
            if place >= 0 and not target.failed:
                result = target.results[place]
                if not isinstance(result, SequenceError):
                    answers.append(what.answer(correlation_id, result, target.start_offset))
                    continue
            answers.append(what.refusal(correlation_id, target.outcome(place).error))
        return [b"".join(answers)] if answers else []

    def _answers_later(self) -> Answers:
        """The same where some have to wait."""
        produced = self._service.metrics.produce
        produced.requests += len(self._asked)
        answers: Answers = []
        last: Unacknowledged | None = None
        for what, correlation_id, place in self._asked:
            if isinstance(what, Together):
                produced.requests += len(what.row.correlation_ids) - 1
            waits, answer = self._answer_later(what, correlation_id, place)
            last = add_answer(answers, last, waits, answer)
        return answers

    def _answer_later(self, what: Asked, correlation_id: int, place: int) -> tuple[Waits, Answer]:
        """The awaitable that an answer waits for, and the function that then makes the answer."""
        if isinstance(what, Irregular):
            return self._answer_irregular(what)
        correlation_ids: Sequence[int]
        if isinstance(what, Together):
            route, correlation_ids, good = what.route, what.row.correlation_ids, what.answers()
            error = int(what.error)
        else:
            route, correlation_ids = what, (correlation_id,)
            error, *stored = what.target.outcome(place)
            good = what.refusal(correlation_id, error) if error else what.answer(correlation_id, *stored)
        wait = None if error else route.target.wait(route.timeout_ms)
        if wait is None:
            return frozenset(), lambda _: good
        return frozenset((wait,)), lambda codes: route.refusals(correlation_ids, codes[wait]) if codes[wait] else good

    def _answer_irregular(self, what: Irregular) -> tuple[Waits, Answer]:
        request = what.request
        outcomes = [target.outcome(place) for target, place in what.places]
        waits = [
            None if outcome.error else target.wait(request.timeout_ms)
            for (target, _), outcome in zip(what.places, outcomes, strict=True)
        ]

        def answer(codes: Codes) -> bytes:
            failed = [ErrorCode.NONE if wait is None else codes[wait] for wait in waits]
            now = [Outcome(code) if code else outcome for code, outcome in zip(failed, outcomes, strict=True)]
            return wire.answer(request, now) if request.acks != 0 else b""

        if request.acks == 0 and any(outcome.error for outcome in outcomes):
            # Nobody listens for an answer: only the end of the connection tells the producer that something is wrong.
            self.failed = True
        return frozenset(wait for wait in waits if wait is not None), answer


def _refusal(request: ProduceRequest) -> ErrorCode:
    """The error of the request as a whole."""
    if request.acks not in _ACKS_ALLOWED:
        return ErrorCode.INVALID_REQUIRED_ACKS
    if request.transactional:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ErrorCode.NONE
