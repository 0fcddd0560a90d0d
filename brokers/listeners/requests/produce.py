"""The produce requests of one socket read: checked one by one, appended per partition in one write, answered in order.

This is the hot path, and `Run.take` is its inner loop: unrolled on purpose (`make bench`, 8 B x 1). What the requests
of one producer to one partition have in common is kept as a `Route`, so that a request costs a comparison of its
constant bytes, the check of its batch, and little else.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from brokers.log.errors import LeaderEpochStale, LogError, SequenceError
from brokers.wire.apis import produce as wire
from brokers.wire.apis.produce import CORRELATION_AT, CORRELATION_END, Outcome, ProduceRequest, Template
from brokers.wire.batch import BatchError, check_produced
from brokers.wire.errors import ErrorCode
from brokers.wire.framing import SIZE_BYTES
from brokers.wire.rows import RowLayout
from coordinators.leadership import enough_in_sync
from coordinators.model import Partition, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from brokers.listeners.service import Service
    from brokers.log.log import Batch
    from brokers.replication.store import HeldPartition
    from brokers.wire.rows import Row

_ROUTES_MAX: Final = 1024
_ACKS_ALLOWED: Final = frozenset({-1, 0, 1})


class Target:
    """A partition in the present run: what is to be appended to it, and then what came of it."""

    __slots__ = (
        "at", "batches", "begun", "epoch", "error", "error_all", "failed", "held", "results", "start_offset",
        "together",
    )  # fmt: skip

    def __init__(self, at: TopicPartition) -> None:
        self.at = at
        self.held: HeldPartition | None = None
        self.begun = False
        self.error = ErrorCode.NONE  # why nothing more is taken
        self.error_all = ErrorCode.NONE  # the same for requests that ask for all replicas in sync
        self.failed = ErrorCode.NONE  # why what was taken is not appended
        self.epoch = -1
        self.start_offset = 0
        self.together: Together | None = None  # come before the others
        self.batches: list[Batch] = []
        self.results: list[int | SequenceError] = []

    def refuse(self, error: ErrorCode) -> None:
        """Append nothing of what was taken."""
        if self.together is not None:
            self.together.error = error
        self.failed = error

    def outcome(self, place: int) -> Outcome:
        """What became of the batch at `place`; a negative one is an error that it met before."""
        if place < 0:
            return Outcome(-place)
        if self.failed:
            return Outcome(self.failed)
        result = self.results[place]
        if isinstance(result, SequenceError):
            return Outcome(ErrorCode[result.kafka_error])
        return Outcome(ErrorCode.NONE, result, self.start_offset)


class Route(Template):
    """A template and the partition that it leads to. `fields` reads the correlation id and the size of the records."""

    __slots__ = ("fields", "row_layout", "target")

    def __init__(self, data: bytearray, at: int, request: ProduceRequest, target: Target) -> None:
        super().__init__(data, at, request)
        self.target = target
        self.fields = Struct(f">i{len(self.key)}xi").unpack_from
        self.row_layout: RowLayout | None = None  # of the size that came last

    def row(self, view: memoryview, start: int, end: int, count: int, bytes_max: int) -> Row | None:
        """The `count` requests of which the first lies in `view[start:end]`, if they are a row."""
        if self.row_layout is None or self.row_layout.frame_bytes != end - start:
            self.row_layout = RowLayout(self, end - start)
        return self.row_layout.read(view, start - SIZE_BYTES, count, bytes_max)


class Together:
    """Requests that were taken together, and what came of them."""

    __slots__ = ("error", "offsets", "route", "row")

    def __init__(self, route: Route, row: Row) -> None:
        self.route = route
        self.row = row
        self.error = ErrorCode.NONE
        self.offsets = range(0)


class Irregular:
    """A request that has no route: several partitions, or something that is refused."""

    __slots__ = ("places", "request")

    def __init__(self, request: ProduceRequest, places: list[tuple[Target, int]]) -> None:
        self.request = request
        self.places = places


class Run:
    """One connection's, used again for each read: `take` requests, then `finish`.

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
    )

    def __init__(self, service: Service) -> None:
        self._service = service
        self._last: Route | None = None
        self._routes: dict[bytes, Route] = {}
        self._key_ends: tuple[int, ...] = ()
        self._targets: dict[TopicPartition, Target] = {}
        self._begun: list[Target] = []
        self._asked: list[tuple[Route | Irregular | Together, int, int]] = []
        self._batch_bytes_max = service.limits.batch_bytes_max
        self.failed = False

    def __bool__(self) -> bool:
        return bool(self._asked)

    def take(
        self,
        data: bytearray,
        view: memoryview,
        start: int,
        end: int,
        leaders: Sequence[Partition | ErrorCode] | None = None,
    ) -> bool:
        """Take the request that lies in `data[start:end]`; False if its leaders must be looked up first.

        `view` is of `data`, which must stay as it is until `finish`. Raises `Malformed`.
        """
        route = self._last
        key_at = start + CORRELATION_END
        if route is None or not (data.startswith(route.key, key_at) and data.startswith(route.head, start)):
            route = self._last = self._route(view, start)
            if route is None:
                return self._take_irregular(data, view, start, end, leaders)
        at = start + route.records_at
        if at > end:
            return self._take_irregular(data, view, start, end, leaders)
        correlation_id, size = route.fields(data, start + CORRELATION_AT)
        if at + size != end:
            return self._take_irregular(data, view, start, end, leaders)
        target = route.target
        if (leaders is not None or not target.begun) and not self._begin(target, leaders[0] if leaders else None):
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
        route = self._last
        last = start + (count - 1) * (end - start + SIZE_BYTES)
        if route is None or not all(data.startswith(route.key, at + CORRELATION_END) for at in (start, last)):
            return False
        target = route.target
        if not self._begin(target, None) or (target.error_all if route.acks < 0 else target.error):
            return False
        row = route.row(view, start, end, count, self._batch_bytes_max)
        if row is None:
            return False
        target.together = Together(route, row)
        self._asked.append((target.together, 0, 0))
        return True

    def partitions(self, data: bytearray, start: int, end: int) -> list[TopicPartition]:
        """Whose leaders a request needs. Raises `Malformed`."""
        return [TopicPartition(part.topic, part.partition) for part in wire.read(data, start, end).parts]

    def finish(self) -> tuple[list[bytes], list[Awaitable[None]]]:
        """Append everything: the answers in order, and what must be waited for before they may be sent."""
        waits = []
        serves = self._service.coordinator.serves()
        for target in self._begun:
            if not serves:
                target.refuse(ErrorCode.LEADER_NOT_AVAILABLE)
            elif target.batches or target.together is not None:
                wait = self._append(target)
                if wait is not None:
                    waits.append(wait)
        answers = self._answers()
        for target in self._begun:
            target.begun, target.together, target.batches = False, None, []
        self._begun, self._asked = [], []
        if len(self._routes) > _ROUTES_MAX or len(self._targets) > _ROUTES_MAX:
            self._last, self._routes, self._key_ends, self._targets = None, {}, (), {}
        return answers, waits

    # --- taking -------------------------------------------------------------------------------------------

    def _route(self, view: memoryview, start: int) -> Route | None:
        for key_end in self._key_ends:
            route = self._routes.get(
                bytes(view[start : start + 4]) + bytes(view[start + CORRELATION_END : start + key_end])
            )
            if route is not None:
                return route
        return None

    def _begin(self, target: Target, leader: Partition | ErrorCode | None) -> bool:
        """Find out whether this broker may append to `target`; False if somebody else must be asked."""
        service = self._service
        if leader is None:
            leader = service.known_leader(target.at)
            if leader is None:
                return False
        if not target.begun:
            target.begun, target.failed = True, ErrorCode.NONE
            self._begun.append(target)
        target.held = service.store.partition(*target.at)
        if not isinstance(leader, Partition):
            target.error = leader
        elif leader.leader != service.coordinator.me.id or target.held is None:
            target.error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        else:
            target.error, target.epoch = ErrorCode.NONE, leader.epoch
            if not enough_in_sync(leader, target.held.settings, service.defaults.min_insync_replicas):
                target.error_all = ErrorCode.NOT_ENOUGH_REPLICAS
                return True
        target.error_all = target.error
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

    def _take_irregular(
        self,
        data: bytearray,
        view: memoryview,
        start: int,
        end: int,
        leaders: Sequence[Partition | ErrorCode] | None,
    ) -> bool:
        request = wire.read(data, start, end)
        targets = [self._target(TopicPartition(part.topic, part.partition)) for part in request.parts]
        refusal = _refusal(request)
        if refusal is ErrorCode.NONE:
            for number, target in enumerate(targets):
                if not self._begin(target, leaders[number] if leaders else None):
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

    def _append(self, target: Target) -> Awaitable[None] | None:
        held, together = target.held, target.together
        assert held is not None
        before = held.end_offset
        stored_bytes = 0
        if together is not None:
            try:
                together.offsets = held.append_row(together.row, target.epoch)
                stored_bytes = len(together.row.timestamps) * together.row.header.size
            except LogError as error:
                together.error = _storing_failed(error)
        if target.batches:
            try:
                target.results = held.append(target.batches, target.epoch)
                stored_bytes += sum([len(batch) for batch, _ in target.batches])
            except LogError as error:
                target.failed = _storing_failed(error)
        if not stored_bytes:
            return None
        target.start_offset = held.start_offset
        produced = self._service.metrics.produce
        produced.messages += held.end_offset - before
        produced.bytes += stored_bytes
        return held.durable(held.end_offset)

    def _answers(self) -> list[bytes]:
        produced = self._service.metrics.produce
        produced.requests += len(self._asked)
        answers: list[bytes] = []
        for what, correlation_id, place in self._asked:
            if isinstance(what, Together):
                produced.requests += len(what.row.correlation_ids) - 1
                answers.append(_answers_together(what))
                continue
            if isinstance(what, Irregular):
                self._answer_irregular(what, answers)
                continue
            target = what.target
            if place >= 0 and not target.failed:
                result = target.results[place]
                if not isinstance(result, SequenceError):
                    answers.append(what.answer(correlation_id, result, target.start_offset))
                    continue
            answers.append(what.refusal(correlation_id, target.outcome(place).error))
        return answers

    def _answer_irregular(self, what: Irregular, answers: list[bytes]) -> None:
        outcomes = [target.outcome(place) for target, place in what.places]
        if what.request.acks != 0:
            answers.append(wire.answer(what.request, outcomes))
        elif any(outcome.error for outcome in outcomes):
            # Nobody listens for an answer: only the end of the connection tells the producer that something is wrong.
            self.failed = True


def _storing_failed(error: LogError) -> ErrorCode:
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if isinstance(error, LeaderEpochStale) else ErrorCode.KAFKA_STORAGE_ERROR


def _answers_together(done: Together) -> bytes:
    route, correlation_ids = done.route, done.row.correlation_ids
    if done.error:
        return b"".join([route.refusal(correlation_id, done.error) for correlation_id in correlation_ids])
    return route.answers(correlation_ids, done.offsets, route.target.start_offset)


def _refusal(request: ProduceRequest) -> ErrorCode:
    """What is wrong with the request as a whole."""
    if request.acks not in _ACKS_ALLOWED:
        return ErrorCode.INVALID_REQUIRED_ACKS
    if request.transactional:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ErrorCode.NONE
