"""From the domain to messages: every error has a code of its own, and every value comes through."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from brokers.log import errors as log
from brokers.replication.errors import LeadershipEnded, NotLeader, TooFewInSync
from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.answers import ITEMS_MAX, REFUSALS, error_of, record_of, settings_of, to_send
from brokers.wire import batch
from brokers.wire.batch import Record
from coordinators import errors as coordination
from coordinators.errors import CoordinationError, InvalidRequest, JournalFailed
from coordinators.model import TopicSettings


@pytest.mark.parametrize(
    ("error", "code", "definite"),
    [
        (coordination.UnknownTopic("x"), pb.UNKNOWN_TOPIC, True),
        (NotLeader("x"), pb.NOT_LEADER, True),
        (LeadershipEnded("x"), pb.NOT_LEADER, False),
        (coordination.InvalidRequest("x"), pb.INVALID_REQUEST, True),
        (coordination.TopicExists("x"), pb.TOPIC_EXISTS, True),
        (coordination.NotEnoughBrokers("x"), pb.NOT_ENOUGH_BROKERS, True),
        (coordination.Unsupported("x"), pb.UNSUPPORTED, True),
        (coordination.NotCoordinator("x"), pb.NOT_COORDINATOR, True),
        (coordination.Unavailable("x"), pb.COORDINATOR_UNAVAILABLE, True),
        (coordination.StaleEpoch("x"), pb.STALE_EPOCH, True),
        (coordination.OutcomeUnknown("x"), pb.UNKNOWN_OUTCOME, False),
        (batch.BatchTooLarge("x"), pb.INVALID_REQUEST, True),
        (log.LogOffsetOutOfRange(9, 0, 5), pb.OFFSET_OUT_OF_RANGE, True),
        (log.SequenceOutOfOrder("x"), pb.INVALID_REQUEST, True),
        (log.LogRefusesWrites("x"), pb.STORAGE_FAILED, True),
        (log.LogDiskFailed("x"), pb.STORAGE_FAILED, True),
        (log.LogChangeUncertain("x"), pb.STORAGE_FAILED, False),
        (log.LogSyncFailed("x"), pb.STORAGE_FAILED, False),
        (JournalFailed("x"), pb.STORAGE_FAILED, True),
        (TooFewInSync("x"), pb.NOT_ENOUGH_REPLICAS, True),
    ],
)
def test_an_error_has_its_code_and_says_whether_it_is_certain(
    error: Exception, code: pb.ErrorCode.ValueType, definite: bool
) -> None:
    assert isinstance(error, REFUSALS)
    answer = error_of(error)
    assert (answer.code, answer.definite, answer.message) == (code, definite, str(error))


def test_every_code_is_some_errors() -> None:
    below = [*_below(CoordinationError), *_below(log.LogError), *_below(batch.BatchError)]
    every = [*below, NotLeader, TooFewInSync, JournalFailed]
    codes = {error_of(Exception.__new__(kind)).code for kind in every}
    assert codes == set(pb.ErrorCode.values()) - {pb.OK}


def test_every_error_of_the_layers_below_is_a_refusal() -> None:
    for root in (CoordinationError, log.LogError, batch.BatchError):
        assert all(issubclass(kind, REFUSALS) for kind in _below(root))


def _below(root: type[Exception]) -> list[type[Exception]]:
    return [root, *(kind for child in root.__subclasses__() for kind in _below(child))]


def test_a_record_without_a_time_gets_the_present_and_one_with_it_keeps_it() -> None:
    records = to_send([pb.Record(value=b"a"), pb.Record(value=b"b", timestamp_ms=7)], now_ms=1000)
    assert [record.timestamp for record in records] == [1000, 7]


def test_absent_is_not_empty() -> None:
    (absent, empty) = to_send([pb.Record(), pb.Record(key=b"", value=b"")], now_ms=0)
    assert (absent.key, absent.value, empty.key, empty.value) == (None, None, b"", b"")
    assert not record_of(Record(0, 0, None, None)).HasField("value")
    assert record_of(Record(0, 0, b"", b"")).HasField("value")


def test_a_time_before_all_times_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="timestamp_ms must not be negative"):
        to_send([pb.Record(), pb.Record(timestamp_ms=-(2**63))], now_ms=0)


class Untouched(list[pb.Record]):
    """Records that nobody may look at."""

    def __iter__(self) -> Iterator[pb.Record]:
        raise AssertionError("each costs time in which nobody else is served")


def test_too_many_records_are_refused_without_a_look_at_them() -> None:
    with pytest.raises(InvalidRequest, match=f"at most {ITEMS_MAX} records, .* not {ITEMS_MAX + 1} records"):
        to_send(Untouched([pb.Record()] * (ITEMS_MAX + 1)), now_ms=0)


@pytest.mark.parametrize("headers", [0, 1, 3])
def test_records_and_their_headers_have_a_bound_together(headers: int) -> None:
    one = pb.Record(headers=[pb.Header()] * headers)
    most = [one] * (ITEMS_MAX // (1 + headers))
    assert len(to_send(most, now_ms=0)) == len(most)
    with pytest.raises(InvalidRequest, match=f"at most {ITEMS_MAX} records, .* not {len(most) + 1} records"):
        to_send([*most, one], now_ms=0)


def test_settings_that_are_not_given_are_the_brokers_own() -> None:
    assert settings_of(pb.TopicSettings()) == TopicSettings()
    given = pb.TopicSettings(fetch_records_max=5, retention_bytes=1000, retention_ms=0, min_insync_replicas=2)
    assert settings_of(given) == TopicSettings(5, 1000, 0, 2)


@pytest.mark.parametrize("name", ["fetch_records_max", "retention_bytes", "retention_ms", "min_insync_replicas"])
def test_settings_below_zero_are_refused_by_name(name: str) -> None:
    settings = pb.TopicSettings()
    setattr(settings, name, -1)
    with pytest.raises(InvalidRequest, match=f"{name} must not be negative, and is -1"):
        settings_of(settings)
