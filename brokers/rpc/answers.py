"""From the domain's values and errors to the messages of the gRPC service. The error codes stand here alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from brokers.log.errors import LogError, LogOffsetOutOfRange, SequenceError
from brokers.replication.errors import NotLeader, TooFewInSync
from brokers.rpc import brokerlab_pb2 as pb
from brokers.wire.batch import BatchError, Record, RecordToSend
from coordinators import errors as coordination
from coordinators.errors import InvalidRequest, JournalFailed
from coordinators.model import Topic, TopicSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brokers.replication.store import Store

# Every error that an operation may end with, most special first.
_CODES: Final[Sequence[tuple[type[Exception], pb.ErrorCode.ValueType]]] = (
    (coordination.UnknownTopic, pb.UNKNOWN_TOPIC),
    (coordination.TopicExists, pb.TOPIC_EXISTS),
    (coordination.NotEnoughBrokers, pb.NOT_ENOUGH_BROKERS),
    (coordination.Unsupported, pb.UNSUPPORTED),
    (coordination.StaleEpoch, pb.STALE_EPOCH),
    (coordination.NotCoordinator, pb.NOT_COORDINATOR),
    (coordination.Unavailable, pb.COORDINATOR_UNAVAILABLE),
    (coordination.Unreadable, pb.COORDINATOR_UNAVAILABLE),
    (coordination.OutcomeUnknown, pb.UNKNOWN_OUTCOME),
    (coordination.CoordinationError, pb.INVALID_REQUEST),
    (NotLeader, pb.NOT_LEADER),
    (TooFewInSync, pb.NOT_ENOUGH_REPLICAS),
    (BatchError, pb.INVALID_REQUEST),
    (LogOffsetOutOfRange, pb.OFFSET_OUT_OF_RANGE),
    (SequenceError, pb.INVALID_REQUEST),
    (LogError, pb.STORAGE_FAILED),
    (JournalFailed, pb.STORAGE_FAILED),
)
REFUSALS: Final = tuple(kind for kind, _ in _CODES)

# Records and their headers together, of one request or answer: each costs some microseconds in which nobody else is
# served, and some hundred bytes.
ITEMS_MAX: Final = 100_000


def error_of(error: Exception) -> pb.Error:
    """The answer's error for one of `REFUSALS`."""
    code = next(code for kind, code in _CODES if isinstance(error, kind))
    return pb.Error(code=code, message=str(error), definite=getattr(error, "definite", True))


def to_send(records: Sequence[pb.Record], now_ms: int) -> list[RecordToSend]:
    """Records as a batch takes them; one without a timestamp gets the present. Raises `InvalidRequest`."""
    items = len(records)
    if items > ITEMS_MAX:
        raise _too_many(f"{items} records")
    found = []
    for record in records:
        if record.timestamp_ms < 0:
            raise InvalidRequest("a record's timestamp_ms must not be negative")
        headers = record.headers
        if headers:
            items += len(headers)
            if items > ITEMS_MAX:
                raise _too_many(f"{len(records)} records with more headers")
        found.append(
            RecordToSend(
                value=record.value if record.HasField("value") else None,
                key=record.key if record.HasField("key") else None,
                headers=tuple((header.key, header.value) for header in headers) if headers else (),
                timestamp=record.timestamp_ms or now_ms,
            )
        )
    return found


def _too_many(found: str) -> InvalidRequest:
    return InvalidRequest(
        f"a produce request carries at most {ITEMS_MAX} records, each of their headers counted as one, not {found}"
    )


def record_of(record: Record) -> pb.Record:
    headers = [pb.Header(key=key, value=value or b"") for key, value in record.headers]
    return pb.Record(
        offset=record.offset, timestamp_ms=record.timestamp, key=record.key, value=record.value, headers=headers
    )


def settings_of(settings: pb.TopicSettings) -> TopicSettings:
    """A topic's settings. Raises `InvalidRequest` for those that no topic can have."""
    for name in ("fetch_records_max", "retention_bytes", "retention_ms", "min_insync_replicas"):
        if getattr(settings, name) < 0:
            raise InvalidRequest(f"{name} must not be negative, and is {getattr(settings, name)}")
    return TopicSettings(
        fetch_records_max=settings.fetch_records_max,
        retention_bytes=settings.retention_bytes if settings.HasField("retention_bytes") else None,
        retention_ms=settings.retention_ms if settings.HasField("retention_ms") else None,
        min_insync_replicas=settings.min_insync_replicas,
    )


def topic_of(topic: Topic, store: Store) -> pb.Topic:
    """A topic as this broker knows it, with the offsets of the partitions that it holds."""
    answer = pb.Topic(
        name=topic.name,
        life=topic.life,
        settings=pb.TopicSettings(
            fetch_records_max=topic.settings.fetch_records_max,
            retention_bytes=topic.settings.retention_bytes,
            retention_ms=topic.settings.retention_ms,
            min_insync_replicas=topic.settings.min_insync_replicas,
        ),
    )
    for number, partition in enumerate(topic.partitions):
        replica = store.partition(topic.name, number)
        answer.partitions.add(
            number=number,
            leader=partition.leader,
            epoch=partition.epoch,
            replicas=partition.replicas,
            in_sync=partition.in_sync,
            start_offset=None if replica is None else replica.start_offset,
            end_offset=None if replica is None else replica.readable_end,
        )
    return answer
