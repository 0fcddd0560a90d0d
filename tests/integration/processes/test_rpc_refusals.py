"""The gRPC service against bad input: every refusal says why, and a healthy client does not notice."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from brokers.rpc import brokerlab_pb2 as pb
from tests.integration.processes.running import PATIENCE_S, PROC, RunningBroker, eventually

MESSAGE_BYTES_MAX = 100_000
REQUEST_BYTES_MAX = 1_000_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One of two brokers; the other leads half of the partitions."""
    limits = {"message_bytes_max": MESSAGE_BYTES_MAX, "request_bytes_max": REQUEST_BYTES_MAX}
    made = RunningBroker(tmp_path_factory.mktemp("refusals"), brokers=2, limits=limits)
    other = made.other(2)
    made.start()
    other.start()
    created = made.admin_stub().CreateTopic(pb.CreateTopicRequest(name="t", partitions=2, replication_factor=1))
    assert created.error.code == pb.OK
    yield made
    made.stop()
    other.stop()


@pytest.fixture(scope="module")
def mine(broker: RunningBroker) -> int:
    """The partition that the running broker leads."""
    (topic,) = broker.admin_stub().DescribeTopics(pb.DescribeTopicsRequest(names=["t"])).topics
    return next(partition.number for partition in topic.partitions if partition.leader == 1)


@pytest.fixture(autouse=True)
def _healthy(broker: RunningBroker, mine: int) -> Iterator[None]:
    """Whatever a test does, others are served before and after it."""
    yield
    value = b"a healthy client's"
    request = pb.ProduceRequest(topic="t", partition=mine, acks=1, records=[pb.Record(value=value)])
    produced = broker.data_stub().Produce(request, timeout=PATIENCE_S)
    assert produced.error.code == pb.OK
    fetched = broker.data_stub().Fetch(
        pb.FetchRequest(topic="t", partition=mine, offset=produced.base_offset), timeout=PATIENCE_S
    )
    assert [record.value for record in fetched.records] == [value]


def produce_request(
    partition: int, *, topic: str = "t", acks: int = 1, count: int = 1, size: int = 8
) -> pb.ProduceRequest:
    records = [pb.Record(value=b"x" * size) for _ in range(count)]
    return pb.ProduceRequest(topic=topic, partition=partition, acks=acks, records=records)


def end_offset(broker: RunningBroker, partition: int) -> int:
    (topic,) = broker.admin_stub().DescribeTopics(pb.DescribeTopicsRequest(names=["t"])).topics
    return topic.partitions[partition].end_offset


# --- produce --------------------------------------------------------------------------------------------------


def test_a_produce_that_cannot_be_is_refused_with_the_reason(broker: RunningBroker, mine: int) -> None:
    long_ago = pb.ProduceRequest(topic="t", partition=mine, acks=1, records=[pb.Record(value=b"x", timestamp_ms=-1)])
    before = end_offset(broker, mine)
    for request, code, words in (
        (produce_request(0, topic="nosuch"), pb.UNKNOWN_TOPIC, "nosuch"),
        (produce_request(0, topic=""), pb.UNKNOWN_TOPIC, ""),
        (produce_request(0, topic="../t"), pb.UNKNOWN_TOPIC, ""),
        (produce_request(2), pb.UNKNOWN_TOPIC, "t-2"),
        (produce_request(2**31 - 1), pb.UNKNOWN_TOPIC, ""),
        (produce_request(-1), pb.INVALID_REQUEST, "partition must not be negative, and is -1"),
        (produce_request(1 - mine), pb.NOT_LEADER, "is led by broker 2"),
        (produce_request(mine, acks=2), pb.INVALID_REQUEST, "acks must be 0, 1 or -1 (all), not 2"),
        (produce_request(mine, acks=-2), pb.INVALID_REQUEST, "not -2"),
        (produce_request(mine, count=0), pb.INVALID_REQUEST, "at least one record"),
        (produce_request(mine, count=100_001, size=0), pb.INVALID_REQUEST, "at most 100000 records"),
        (produce_request(mine, size=MESSAGE_BYTES_MAX), pb.INVALID_REQUEST, f"at most {MESSAGE_BYTES_MAX}"),
        (long_ago, pb.INVALID_REQUEST, "timestamp_ms must not be negative"),
    ):
        answer = broker.data_stub().Produce(request)
        assert (answer.error.code, answer.base_offset, answer.error.definite) == (code, -1, True), request
        assert words in answer.error.message
    assert end_offset(broker, mine) == before


def test_a_record_with_the_latest_of_times_is_stored_and_read(broker: RunningBroker, mine: int) -> None:
    records = [pb.Record(value=b"now"), pb.Record(value=b"late", timestamp_ms=2**63 - 1)]
    produced = broker.data_stub().Produce(pb.ProduceRequest(topic="t", partition=mine, acks=1, records=records))
    assert produced.error.code == pb.OK, produced.error
    fetched = broker.data_stub().Fetch(pb.FetchRequest(topic="t", partition=mine, offset=produced.base_offset))
    assert [record.value for record in fetched.records] == [b"now", b"late"]
    assert fetched.records[1].timestamp_ms == 2**63 - 1


def test_keys_headers_and_absent_values_come_back_as_they_were(broker: RunningBroker, mine: int) -> None:
    records = [
        pb.Record(key=b"k", value=b"", headers=[pb.Header(key="é", value=b"\0"), pb.Header(key="", value=b"")]),
        pb.Record(key=b"deleted"),
        pb.Record(),
    ]
    produced = broker.data_stub().Produce(pb.ProduceRequest(topic="t", partition=mine, acks=1, records=records))
    fetched = broker.data_stub().Fetch(pb.FetchRequest(topic="t", partition=mine, offset=produced.base_offset)).records
    assert [(r.key, r.HasField("key"), r.HasField("value")) for r in fetched] == [
        (b"k", True, True), (b"deleted", True, False), (b"", False, False),
    ]  # fmt: skip
    assert [(header.key, header.value) for header in fetched[0].headers] == [("é", b"\0"), ("", b"")]


def test_a_stream_survives_its_refusals_and_answers_in_order(broker: RunningBroker, mine: int) -> None:
    requests = [
        produce_request(mine), produce_request(mine, acks=2), produce_request(0, topic="nosuch"),
        produce_request(mine, acks=0), produce_request(1 - mine), produce_request(mine, count=3),
    ]  # fmt: skip
    before = end_offset(broker, mine)
    answers = list(broker.data_stub().ProduceStream(iter(requests)))
    codes = [answer.error.code for answer in answers]
    assert codes == [pb.OK, pb.INVALID_REQUEST, pb.UNKNOWN_TOPIC, pb.NOT_LEADER, pb.OK]
    assert [answers[0].base_offset, answers[-1].base_offset] == [before, before + 2]
    assert end_offset(broker, mine) == before + 5


# --- fetch ----------------------------------------------------------------------------------------------------


def test_a_fetch_that_cannot_be_is_refused_with_the_reason(broker: RunningBroker, mine: int) -> None:
    end = end_offset(broker, mine)
    for changes, code, words in (
        ({"topic": "nosuch"}, pb.UNKNOWN_TOPIC, "nosuch"),
        ({"partition": 5}, pb.UNKNOWN_TOPIC, "t-5"),
        ({"partition": -1}, pb.INVALID_REQUEST, "partition must not be negative"),
        ({"partition": 1 - mine}, pb.NOT_LEADER, "broker 2"),
        ({"offset": -1}, pb.OFFSET_OUT_OF_RANGE, "offset -1 is outside"),
        ({"offset": end + 1}, pb.OFFSET_OUT_OF_RANGE, f"offset {end + 1} is outside 0 to {end}"),
        ({"offset": 2**63 - 1, "wait_max_ms": 2**31 - 1}, pb.OFFSET_OUT_OF_RANGE, ""),
        ({"records_max": -1}, pb.INVALID_REQUEST, "records_max must not be negative, and is -1"),
        ({"bytes_max": -5}, pb.INVALID_REQUEST, "bytes_max must not be negative, and is -5"),
        ({"wait_max_ms": -1}, pb.INVALID_REQUEST, "wait_max_ms must not be negative"),
    ):
        fields = {"topic": "t", "partition": mine, "offset": 0, **changes}
        answer = broker.data_stub().Fetch(pb.FetchRequest(**fields), timeout=PATIENCE_S)  # type: ignore[arg-type]
        assert (answer.error.code, list(answer.records)) == (code, []), fields
        assert words in answer.error.message


def test_bounds_of_a_fetch_are_kept_and_one_message_comes_whatever_they_are(broker: RunningBroker, mine: int) -> None:
    start = broker.data_stub().Produce(produce_request(mine, count=5)).base_offset
    broker.data_stub().Produce(produce_request(mine, count=5))

    def count(**bounds: int) -> int:
        request = pb.FetchRequest(topic="t", partition=mine, offset=start, **bounds)
        return len(broker.data_stub().Fetch(request).records)

    assert count() >= 10
    assert count(records_max=1) >= 1
    assert count(bytes_max=1) >= 1
    assert count(records_max=7) <= 7


def test_an_answer_has_a_bound_whatever_is_stored(broker: RunningBroker, mine: int) -> None:
    many = produce_request(mine, count=4000, size=8)
    start, *_ = [answer.base_offset for answer in broker.data_stub().ProduceStream(iter([many, many, many]))]
    fetched = broker.data_stub().Fetch(pb.FetchRequest(topic="t", partition=mine, offset=start))
    assert 4000 <= len(fetched.records) <= 10_000
    assert fetched.end_offset >= start + 12_000


def test_a_fetch_that_waits_for_a_topic_that_is_deleted_is_told(broker: RunningBroker) -> None:
    admin = broker.admin_stub()
    created = admin.CreateTopic(pb.CreateTopicRequest(name="short-lived", partitions=2, replication_factor=1))
    at = next(partition.number for partition in created.topic.partitions if partition.leader == 1)
    waiting = broker.data_stub().Fetch.future(pb.FetchRequest(topic="short-lived", partition=at, wait_max_ms=60_000))
    admin.Statistics(pb.StatisticsRequest())  # behind the fetch
    admin.DeleteTopic(pb.DeleteTopicRequest(name="short-lived"))
    assert waiting.result(timeout=PATIENCE_S).error.code == pb.UNKNOWN_TOPIC


def test_a_cancelled_fetch_leaves_nothing_waiting(broker: RunningBroker, mine: int) -> None:
    waiting = broker.data_stub().Fetch.future(
        pb.FetchRequest(topic="t", partition=mine, offset=end_offset(broker, mine), wait_max_ms=60_000)
    )
    waiting.cancel()
    assert waiting.cancelled()


# --- offsets and topics ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def groups(broker: RunningBroker) -> tuple[str, str]:
    """A group that the running broker serves, and one that the other does."""
    homes: dict[int, str] = {}
    for name in (f"group-{number}" for number in range(100)):
        answer = broker.admin_stub().DescribeCluster(pb.DescribeClusterRequest(group=name))
        homes.setdefault(answer.group_coordinator, name)
    return homes[1], homes[2]


def test_a_commit_that_cannot_be_is_refused_and_nothing_is_kept(broker: RunningBroker, groups: tuple[str, str]) -> None:
    served, other = groups
    good = pb.PartitionOffset(topic="t", partition=0, offset=1)
    for group, place, code, words in (
        ("", good, pb.INVALID_REQUEST, "a consumer group needs a name"),
        ("g" * 65_536, good, pb.INVALID_REQUEST, "not 65536"),
        (other, good, pb.NOT_COORDINATOR, "is served by broker 2, not 1"),
        (served, pb.PartitionOffset(topic="t", partition=0, offset=-1), pb.INVALID_REQUEST, "not -1"),
        (served, pb.PartitionOffset(topic="t", partition=-1, offset=1), pb.INVALID_REQUEST, "partition must not be"),
        (served, pb.PartitionOffset(topic="nosuch", partition=0, offset=1), pb.UNKNOWN_TOPIC, "nosuch"),
        (served, pb.PartitionOffset(topic="t", partition=7, offset=1), pb.UNKNOWN_TOPIC, "7"),
    ):
        answer = broker.data_stub().CommitOffsets(pb.CommitOffsetsRequest(group=group, offsets=[good, place]))
        assert answer.error.code == code, answer
        assert words in answer.error.message
    assert not broker.data_stub().CommittedOffsets(pb.CommittedOffsetsRequest(group=served)).offsets


def test_offsets_are_read_where_they_are_kept(broker: RunningBroker, groups: tuple[str, str]) -> None:
    served, other = groups
    answer = broker.data_stub().CommittedOffsets(pb.CommittedOffsetsRequest(group=served))
    assert (answer.error.code, list(answer.offsets)) == (pb.OK, [])
    refused = broker.data_stub().CommittedOffsets(pb.CommittedOffsetsRequest(group=other))
    assert refused.error.code == pb.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"name": ""}, pb.INVALID_REQUEST, "a topic needs a name"),
        ({"name": ".."}, pb.INVALID_REQUEST, "cannot be named '..'"),
        ({"name": "../x"}, pb.INVALID_REQUEST, "'../x'"),
        ({"name": "a\0b"}, pb.INVALID_REQUEST, "letters, digits"),
        ({"name": "x" * 250}, pb.INVALID_REQUEST, "at most 249 characters, not 250"),
        ({"name": "tоpic"}, pb.INVALID_REQUEST, "letters, digits"),  # noqa: RUF001 - the Cyrillic o is the point
        ({"name": "t"}, pb.TOPIC_EXISTS, "'t' exists"),
        ({"partitions": 0}, pb.INVALID_REQUEST, "partitions must be 1 to 10000, not 0"),
        ({"partitions": -1}, pb.INVALID_REQUEST, "not -1"),
        ({"partitions": 10_001}, pb.INVALID_REQUEST, "10001"),
        ({"replication_factor": 0}, pb.INVALID_REQUEST, "replication factor must be at least 1, not 0"),
        ({"replication_factor": 3}, pb.NOT_ENOUGH_BROKERS, "3"),
        ({"settings": pb.TopicSettings(fetch_records_max=-1)}, pb.INVALID_REQUEST, "fetch_records_max must not be"),
        ({"settings": pb.TopicSettings(retention_ms=-1)}, pb.INVALID_REQUEST, "retention_ms must not be negative"),
    ],
)
def test_a_topic_that_cannot_be_is_refused(
    broker: RunningBroker, fields: dict[str, object], code: pb.ErrorCode.ValueType, words: str
) -> None:
    request = pb.CreateTopicRequest(**{"name": "new", "partitions": 1, "replication_factor": 1, **fields})  # type: ignore[arg-type]
    answer = broker.admin_stub().CreateTopic(request)
    assert answer.error.code == code, answer
    assert words in answer.error.message
    assert [topic.name for topic in broker.admin_stub().DescribeTopics(pb.DescribeTopicsRequest()).topics] == ["t"]


def test_what_is_not_there_cannot_be_deleted_or_described(broker: RunningBroker) -> None:
    admin = broker.admin_stub()
    assert admin.DeleteTopic(pb.DeleteTopicRequest(name="nosuch")).error.code == pb.UNKNOWN_TOPIC
    answer = admin.DescribeTopics(pb.DescribeTopicsRequest(names=["t", "nosuch", "neither"]))
    assert (answer.error.code, len(answer.topics)) == (pb.UNKNOWN_TOPIC, 0)
    assert "'nosuch'" in answer.error.message


def test_a_topic_is_described_once_however_often_it_is_named(broker: RunningBroker) -> None:
    admin = broker.admin_stub()
    created = admin.CreateTopic(pb.CreateTopicRequest(name="a", partitions=1, replication_factor=1))
    assert created.error.code == pb.OK
    answer = admin.DescribeTopics(pb.DescribeTopicsRequest(names=["t", *["a", "t"] * 49_999, "a"]), timeout=PATIENCE_S)
    admin.DeleteTopic(pb.DeleteTopicRequest(name="a"))
    assert [topic.name for topic in answer.topics] == ["t", "a"], "in the order in which they were named"


def test_more_names_and_offsets_than_a_request_may_have_are_refused(
    broker: RunningBroker, groups: tuple[str, str]
) -> None:
    admin, data = broker.admin_stub(), broker.data_stub()
    place = pb.PartitionOffset(topic="t", offset=1)
    often = admin.DescribeTopics(pb.DescribeTopicsRequest(names=["t"] * 100_001)).error
    many = admin.DescribeTopics(pb.DescribeTopicsRequest(names=[f"t{n}" for n in range(10_001)])).error
    commit = data.CommitOffsets(pb.CommitOffsetsRequest(group=groups[0], offsets=[place] * 10_001)).error
    group = admin.DescribeCluster(pb.DescribeClusterRequest(group="g" * 256)).error
    for error, words in (
        (often, "at most 100000 topics, not 100001"),
        (many, "at most 10000 different topics, not 10001"),
        (commit, "at most 10000 offsets, not 10001"),
        (group, "at most 255 characters, not 256"),
    ):
        assert (error.code, error.definite) == (pb.INVALID_REQUEST, True)
        assert words in error.message
    assert not data.CommittedOffsets(pb.CommittedOffsetsRequest(group=groups[0])).offsets


# --- below the messages ---------------------------------------------------------------------------------------


def status_of(broker: RunningBroker, method: str, body: bytes) -> grpc.StatusCode:
    call = broker.channel().unary_unary(f"/brokerlab.v1.{method}", lambda raw: raw, lambda raw: raw)
    with pytest.raises(grpc.RpcError) as refused:
        call(body, timeout=PATIENCE_S)
    code: grpc.StatusCode = refused.value.code()
    return code


def test_a_request_beyond_the_bound_is_refused_before_it_is_read(broker: RunningBroker) -> None:
    assert status_of(broker, "Data/Produce", b"\0" * (REQUEST_BYTES_MAX + 1)) is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    "body",
    [
        b"\x0a\x02\xff\xfe",  # a topic that is no UTF-8
        b"\x0a\x7fshort",  # a field that is longer than the message
        b"\xff" * 11,  # a tag that does not end
        b"\x0b" * 200,  # groups in groups
        b"\x0d",  # a field of another type, cut short
    ],
)
def test_bytes_that_are_no_message_are_a_status_and_no_crash(broker: RunningBroker, body: bytes) -> None:
    assert status_of(broker, "Data/Produce", body) in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}


def test_unknown_fields_are_passed_over(broker: RunningBroker) -> None:
    call = broker.channel().unary_unary("/brokerlab.v1.Admin/DescribeTopics", lambda raw: raw, lambda raw: raw)
    answer = pb.DescribeTopicsResponse.FromString(call(b"\x0a\x01t" + b"\xf8\x07\x01", timeout=PATIENCE_S))
    assert [topic.name for topic in answer.topics] == ["t"]


def test_a_method_that_is_not_there_is_unimplemented(broker: RunningBroker) -> None:
    assert status_of(broker, "Data/Nosuch", b"") is grpc.StatusCode.UNIMPLEMENTED


def test_a_broken_message_in_a_stream_ends_that_stream_alone(broker: RunningBroker, mine: int) -> None:
    good = produce_request(mine).SerializeToString()
    call = broker.channel().stream_stream("/brokerlab.v1.Data/ProduceStream", lambda raw: raw, lambda raw: raw)
    answers = call(iter([good, b"\x0a\x02\xff\xfe", good]), timeout=PATIENCE_S)
    with pytest.raises(grpc.RpcError) as refused:
        list(answers)
    assert refused.value.code() is not grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize(
    "opening", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\0\x01\0\x01\xfc", b"\0" * 100]
)
def test_other_protocols_are_sent_away(broker: RunningBroker, opening: bytes) -> None:
    with socket.create_connection(("127.0.0.1", broker.rpc_port), timeout=PATIENCE_S) as connection:
        connection.sendall(opening)
        while connection.recv(65_536):
            pass


def test_metadata_beyond_the_bound_is_refused(broker: RunningBroker) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        broker.admin_stub().Statistics(pb.StatisticsRequest(), metadata=(("x", "y" * 100_000),), timeout=PATIENCE_S)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


# --- streams that are left ------------------------------------------------------------------------------------


def test_streams_that_are_cancelled_in_the_middle_leave_nothing_open(broker: RunningBroker, mine: int) -> None:
    assert broker.process is not None
    descriptors = PROC / str(broker.process.pid) / "fd"
    before = len(list(descriptors.iterdir()))
    for _ in range(20):
        channel = broker.channel()
        call = channel.stream_stream(
            "/brokerlab.v1.Data/ProduceStream", pb.ProduceRequest.SerializeToString, pb.ProduceResponse.FromString
        )
        answers = call(produce_request(mine, topic=name) for name in ["t", "nosuch"] * 200)
        assert next(answers).error.code == pb.OK
        answers.cancel()
        channel.close()
    eventually(lambda: len(list(descriptors.iterdir())) <= before, "connections closed")
    assert broker.log == "", "tasks that were forgotten speak when they are collected"


def test_a_client_that_never_reads_is_bounded_and_hinders_nobody(broker: RunningBroker, mine: int) -> None:
    """The broker takes no more requests than it can answer: the writer stands still."""
    written = 0

    def without_end() -> Iterator[pb.ProduceRequest]:
        nonlocal written
        while True:
            written += 1
            yield produce_request(mine, topic="n" * 20_000)  # the answer names it

    channel = broker.channel()
    call = channel.stream_stream(
        "/brokerlab.v1.Data/ProduceStream", pb.ProduceRequest.SerializeToString, pb.ProduceResponse.FromString
    )
    answers = call(without_end())
    seen = -1

    def stands_still() -> bool:
        nonlocal seen
        before, seen = seen, written
        broker.admin_stub().Statistics(pb.StatisticsRequest(), timeout=PATIENCE_S)
        return before == seen > 0

    eventually(stands_still, "the writer stands still")
    answers.cancel()
    channel.close()


def test_counters_move_by_what_was_carried_and_by_nothing_else(broker: RunningBroker, mine: int) -> None:
    def counts() -> dict[str, tuple[int, int, int]]:
        answer = broker.admin_stub().Statistics(pb.StatisticsRequest())
        assert answer.broker == 1
        return {one.operation: (one.requests, one.messages, one.bytes) for one in answer.operations}

    before = counts()
    start = broker.data_stub().Produce(produce_request(mine, count=5)).base_offset
    broker.data_stub().Produce(produce_request(mine, acks=2))
    broker.data_stub().Fetch(pb.FetchRequest(topic="t", partition=mine, offset=start))
    broker.data_stub().Fetch(pb.FetchRequest(topic="t", partition=mine, offset=start + 5))
    after = counts()
    moved = {name: tuple(b - a for a, b in zip(before[name], after[name], strict=True)) for name in after}
    assert (moved["produce"][:2], moved["fetch"][:2]) == ((1, 5), (1, 5))
    assert moved["produce"][2] == moved["fetch"][2] > 40


def test_what_coordination_cost_is_counted_by_kind(broker: RunningBroker) -> None:
    def commit() -> None:
        place = pb.PartitionOffset(topic="t", partition=0, offset=1)
        for group in ("counted", "counted too", "and one more", "and another"):
            broker.data_stub().CommitOffsets(pb.CommitOffsetsRequest(group=group, offsets=[place]))

    def waited_ns() -> int:
        answer = broker.admin_stub().Statistics(pb.StatisticsRequest())
        return {one.operation: one.wait_ns for one in answer.coordination}.get("commit", 0)

    before = waited_ns()
    commit()
    assert waited_ns() > before


def test_a_broker_in_a_folder_with_blanks_serves(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path / "a folder with blanks, ünïcode")
    try:
        assert broker.start()["ready"] == 1
    finally:
        broker.stop()
