"""The targets of a connection's produce requests: partitions, routes to them, and requests that have none."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from brokers.log.errors import SequenceError
from brokers.wire.apis.produce import Outcome, ProduceRequest, Template
from brokers.wire.errors import ErrorCode
from brokers.wire.framing import SIZE_BYTES
from brokers.wire.rows import RowLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brokers.log.log import Batch
    from brokers.replication.acknowledgements import Acknowledged
    from brokers.replication.replica import Leadership
    from brokers.wire.rows import Row
    from coordinators.model import TopicPartition


class Target:
    """A partition in the present run: what is to be appended to it, and then what came of it."""

    __slots__ = (
        "at", "batches", "begun", "error", "error_all", "failed", "leadership", "results", "start_offset", "together",
        "waits",
    )  # fmt: skip

    def __init__(self, at: TopicPartition) -> None:
        self.at = at
        self.leadership: Leadership | None = None
        self.begun = False
        self.error = ErrorCode.NONE  # why nothing more is taken
        self.error_all = ErrorCode.NONE  # the same for requests that ask for all replicas in sync
        self.failed = ErrorCode.NONE  # why what was taken is not appended
        self.waits: dict[int, Acknowledged] | None = None  # by how long, where what was appended is not safe yet
        self.start_offset = 0
        self.together: Together | None = None  # come before the others
        self.batches: list[Batch] = []
        self.results: list[int | SequenceError] = []

    def wait(self, timeout_ms: int) -> Acknowledged | None:
        """What to await before the appended batches may be acknowledged."""
        if self.waits is None or self.leadership is None:
            return None
        acknowledged = self.waits.get(timeout_ms)
        if acknowledged is None and (acknowledged := self.leadership.replica.acknowledged(timeout_ms)) is not None:
            self.waits[timeout_ms] = acknowledged
        return acknowledged

    def outcome(self, place: int) -> Outcome:
        """The outcome of the batch at `place`; a negative place is an error that it met before."""
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
        """The `count` requests from the one in `view[start:end]` on, if they are a row."""
        if self.row_layout is None or self.row_layout.frame_bytes != end - start:
            self.row_layout = RowLayout(self, end - start)
        return self.row_layout.read(view, start - SIZE_BYTES, count, bytes_max)

    def refusals(self, correlation_ids: Sequence[int], error: ErrorCode) -> bytes:
        return b"".join([self.refusal(correlation_id, error) for correlation_id in correlation_ids])


class Together:
    """Requests that were taken together, and what came of them."""

    __slots__ = ("error", "offsets", "route", "row")

    def __init__(self, route: Route, row: Row) -> None:
        self.route = route
        self.row = row
        self.error = ErrorCode.NONE
        self.offsets = range(0)

    def answers(self) -> bytes:
        correlation_ids = self.row.correlation_ids
        if self.error:
            return self.route.refusals(correlation_ids, self.error)
        return self.route.answers(correlation_ids, self.offsets, self.route.target.start_offset)


class Irregular:
    """A request that has no route: several partitions, or something that is refused."""

    __slots__ = ("places", "request")

    def __init__(self, request: ProduceRequest, places: list[tuple[Target, int]]) -> None:
        self.request = request
        self.places = places


Asked = Route | Irregular | Together
