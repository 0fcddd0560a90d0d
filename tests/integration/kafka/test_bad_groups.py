"""Group requests that are refused, by number; the group that they name goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from brokers.wire.apis.group_admin import FindCoordinatorRequest
from brokers.wire.apis.membership import (
    HeartbeatRequest,
    JoinGroupProtocol,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeavingMember,
    SyncGroupAssignment,
    SyncGroupRequest,
)
from brokers.wire.apis.offsets import OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic, OffsetFetchRequest
from brokers.wire.apis.table import ApiKey
from brokers.wire.errors import ErrorCode
from tests.integration.kafka.cluster import Cluster
from tests.integration.kafka.contract import make_topic, unharmed
from tests.integration.kafka.raw import RawClient, batch

INT64_MAX = 2**63 - 1
INT32_MAX = 2**31 - 1
LONGEST = 32_767


@pytest.fixture
def client(cluster: Cluster) -> Iterator[RawClient]:
    with RawClient(cluster.port()) as client:
        yield client


def join_request(group: str, member_id: str = "", **how: Any) -> JoinGroupRequest:
    fields: dict[str, Any] = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 1_000,
        "protocol_type": "consumer",
        "protocols": (JoinGroupProtocol(name="range", metadata=b"\xff garbage"),),
    }
    return JoinGroupRequest(group_id=group, member_id=member_id, **(fields | how))


def join(client: RawClient, group: str, member_id: str = "", **how: Any) -> Any:
    return client.call(ApiKey.JOIN_GROUP, 3, join_request(group, member_id, **how))


def heartbeat(client: RawClient, group: str, generation: int, member_id: str) -> int:
    message = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
    code: int = client.call(ApiKey.HEARTBEAT, 3, message).error_code
    return code


def commit(client: RawClient, group: str, topic: str, offset: int = 1, **how: Any) -> int:
    part = OffsetCommitPartition(
        partition_index=how.pop("partition", 0), committed_offset=offset, committed_metadata=how.pop("metadata", None)
    )
    identity: dict[str, Any] = {"generation_id": -1, "member_id": ""} | how
    topics = (OffsetCommitTopic(name=topic, partitions=(part,)),)
    answer = client.call(ApiKey.OFFSET_COMMIT, 7, OffsetCommitRequest(group_id=group, topics=topics, **identity))
    code: int = answer.topics[0].partitions[0].error_code
    return code


def committed(client: RawClient, group: str) -> dict[tuple[str, int], int]:
    answer = client.call(ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest(group_id=group, topics=None))
    return {
        (topic.name, part.partition_index): part.committed_offset
        for topic in answer.topics
        for part in topic.partitions
    }


def stable(client: RawClient, group: str) -> Any:
    """The only member of the group, with an assignment that nobody could read."""
    joined = join(client, group)
    assert joined.error_code == 0
    rows = (SyncGroupAssignment(member_id=joined.member_id, assignment=b"\0 garbage"),)
    sync = SyncGroupRequest(
        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=rows
    )
    assert client.call(ApiKey.SYNC_GROUP, 3, sync).assignment == b"\0 garbage"
    return joined


@pytest.mark.parametrize("group", ["", "x" * 256, "x" * LONGEST])
def test_an_impossible_group_id_is_refused(group: str, client: RawClient, cluster: Cluster, topic: str) -> None:
    with unharmed(cluster, topic):
        assert join(client, group).error_code == ErrorCode.INVALID_GROUP_ID
        assert commit(client, group, topic) == ErrorCode.INVALID_GROUP_ID
        answer = client.call(ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest(group_id=group, topics=None))
        assert answer.error_code == ErrorCode.INVALID_GROUP_ID
        assert heartbeat(client, group, 1, "m") == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31), INT32_MAX])
def test_an_impossible_session_timeout_is_refused(timeout_ms: int, client: RawClient, topic: str) -> None:
    answer = join(client, f"{topic}-group", session_timeout_ms=timeout_ms)
    assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("timeout_ms", [0, -1, INT32_MAX])
def test_any_rebalance_timeout_will_do(timeout_ms: int, client: RawClient, topic: str) -> None:
    assert join(client, f"{topic}-group", rebalance_timeout_ms=timeout_ms).error_code == 0


def test_what_members_tell_each_other_is_not_read_here(client: RawClient, topic: str) -> None:
    group = f"{topic}-group"
    joined = stable(client, group)
    assert heartbeat(client, group, joined.generation_id, joined.member_id) == 0


@pytest.mark.parametrize("generation", [-1, 0, 2, INT32_MAX, -(2**31)])
def test_another_generation_is_refused(generation: int, client: RawClient, topic: str) -> None:
    group = f"{topic}-group"
    member_id = stable(client, group).member_id
    assert heartbeat(client, group, generation, member_id) == ErrorCode.ILLEGAL_GENERATION
    code = commit(client, group, topic, generation_id=generation, member_id=member_id)
    assert code == ErrorCode.ILLEGAL_GENERATION
    sync = SyncGroupRequest(group_id=group, generation_id=generation, member_id=member_id, assignments=())
    assert client.call(ApiKey.SYNC_GROUP, 3, sync).error_code == ErrorCode.ILLEGAL_GENERATION


def test_a_member_of_another_group_is_no_member(client: RawClient, topic: str) -> None:
    stranger = stable(client, f"{topic}-other").member_id
    group = f"{topic}-group"
    stable(client, group)
    assert join(client, group, stranger).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(client, group, 1, stranger) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(client, group, topic, generation_id=1, member_id=stranger) == ErrorCode.UNKNOWN_MEMBER_ID
    leaving = LeavingMember(member_id=stranger, group_instance_id=None)
    answer = client.call(ApiKey.LEAVE_GROUP, 3, LeaveGroupRequest(group_id=group, members=(leaving,)))
    assert answer.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    alone = client.call(ApiKey.LEAVE_GROUP, 2, LeaveGroupRequest(group_id=group, member_id=stranger))
    assert alone.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("offset", "code"),
    [(INT64_MAX, 0), (0, 0), (-1, ErrorCode.OFFSET_OUT_OF_RANGE), (-2, ErrorCode.OFFSET_OUT_OF_RANGE)],
)
def test_only_places_in_a_log_are_committed(offset: int, code: int, client: RawClient, topic: str) -> None:
    make_topic(client, topic)
    assert commit(client, f"{topic}-group", topic, offset) == code
    assert committed(client, f"{topic}-group") == ({} if code else {(topic, 0): offset})


def test_places_of_other_topics_are_kept_when_one_is_unknown(client: RawClient, topic: str) -> None:
    make_topic(client, topic)
    part = OffsetCommitPartition(partition_index=0, committed_offset=4, committed_metadata=None)
    topics = tuple(OffsetCommitTopic(name=name, partitions=(part,)) for name in (topic, "no-such-topic"))
    message = OffsetCommitRequest(group_id=f"{topic}-group", generation_id=-1, member_id="", topics=topics)
    answer = client.call(ApiKey.OFFSET_COMMIT, 7, message)
    codes = [row.partitions[0].error_code for row in answer.topics]
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert committed(client, f"{topic}-group") == {(topic, 0): 4}


@pytest.mark.parametrize("partition", [-1, 1, INT32_MAX])
def test_an_unknown_partition_is_not_committed(partition: int, client: RawClient, topic: str) -> None:
    make_topic(client, topic)
    code = commit(client, f"{topic}-group", topic, partition=partition)
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_long_note_is_refused(client: RawClient, topic: str) -> None:
    make_topic(client, topic)
    code = commit(client, f"{topic}-group", topic, metadata="x" * 4097)
    assert code == ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_ten_thousand_joins_are_answered_and_bounded(client: RawClient, cluster: Cluster, topic: str) -> None:
    """Each is a new member that never comes back; the group fills up and stays within its bound."""
    with unharmed(cluster, topic):
        message = join_request(f"{topic}-group", session_timeout_ms=1_000)
        codes = [client.call(ApiKey.JOIN_GROUP, 5, message).error_code for _ in range(10_000)]
    assert set(codes) == {ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.GROUP_MAX_SIZE_REACHED}


def test_a_transaction_has_no_coordinator(client: RawClient) -> None:
    answer = client.call(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest(key="mine", key_type=1))
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_commits_survive_kill_9(tmp_path_factory: pytest.TempPathFactory, topic: str) -> None:
    cluster = Cluster(tmp_path_factory.mktemp("killed"), 1, {"topics": {"auto_create": True}}).start()
    try:
        with RawClient(cluster.port()) as client:
            make_topic(client, topic)
            assert client.produce(topic, batch(b"kept", producer=(5, 0, 0))) == (0, 0)
            assert commit(client, "group", topic, 1) == 0
        cluster.restart()
        with RawClient(cluster.port()) as client:
            assert committed(client, "group") == {(topic, 0): 1}
            assert client.produce(topic, batch(b"kept", producer=(5, 0, 0))) == (0, 0)
            assert client.produce(topic, batch(b"next", producer=(5, 0, 1))) == (0, 1)
    finally:
        cluster.stop()
