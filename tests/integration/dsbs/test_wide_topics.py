"""A topic of many partitions is made and deleted on slow disks: neither heartbeats nor other topics wait for that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.rpc import brokerlab_pb2 as pb
from tests.integration.dsbs.cluster import COORDINATOR, Brokers
from tests.integration.processes.running import eventually

PARTITIONS = 48
# A sync of a folder takes this long: with all syncs of all logs one behind the other on the event loop, each broker
# would say nothing for 48 x 3 x 40 ms, three times what it takes to be suspected and buried.
FSYNC_S = 0.04
BURIED_MS = COORDINATOR["timeout_ms"] + COORDINATOR["suspicion_ms"]  # type: ignore[operator] # they are numbers
assert PARTITIONS * 3 * FSYNC_S * 1000 > 3 * BURIED_MS
VALUES = [b"acknowledged %d" % number for number in range(300)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Brokers]:
    made = Brokers(tmp_path)
    members = [made.made(number) for number in (1, 2, 3)]
    for member in members:
        member.module = ("tests.integration.processes.slow_broker", json.dumps({"fsync_s": FSYNC_S}))
        member.config["log"] = {"fsync": "always"}
    try:
        made.start(*members)
        yield made
    finally:
        made.close()


def incarnations(cluster: Brokers) -> dict[int, tuple[str, int]]:
    """Who was suspected has raised its incarnation since, to refute that; or is dead."""
    return {row.broker: (row.status, row.incarnation) for row in cluster.members[1].tables().brokers}


def led(cluster: Brokers, topic: str) -> list[tuple[int, int]]:
    found = cluster.members[1].topic(topic)
    assert found is not None
    return [(partition.leader, partition.epoch) for partition in found.partitions]


def test_nobody_is_suspected_and_no_leader_changes_while_a_wide_topic_comes_and_goes(cluster: Brokers) -> None:
    cluster.members[1].create("small", partitions=3, replicas=2)
    cluster.produce("small", 0, VALUES)
    before = incarnations(cluster), led(cluster, "small")
    assert not cluster.members[1].create("wide", PARTITIONS, 3).HasField("error")
    cluster.agree()
    assert (incarnations(cluster), led(cluster, "small")) == before
    assert {epoch for _, epoch in led(cluster, "wide")} == {0}
    assert cluster.values("small", 0) == VALUES
    deleted = cluster.members[2].admin_stub().DeleteTopic(pb.DeleteTopicRequest(name="wide"))
    assert not deleted.HasField("error")
    left = [member.data / "deleted" for member in cluster]
    eventually(lambda: not any(list(folder.iterdir()) for folder in left if folder.exists()), "it is removed")
    cluster.agree()
    assert (incarnations(cluster), led(cluster, "small")) == before


def test_a_produce_to_a_log_that_is_not_open_yet_waits_for_it_alone(cluster: Brokers) -> None:
    """The broker through which a topic is made has opened it by then; the others have only heard of it."""
    cluster.members[1].create("wide", PARTITIONS, 3)
    for number, (leader, _) in enumerate(led(cluster, "wide")):
        request = pb.ProduceRequest(topic="wide", partition=number, acks=1, records=[pb.Record(value=b"first")])
        answer = cluster.members[leader].data_stub().Produce(request)
        assert (answer.error.code, answer.base_offset) == (pb.OK, 0), answer.error


def test_a_broker_that_opens_many_logs_at_its_start_is_not_suspected_meanwhile(cluster: Brokers) -> None:
    cluster.members[1].create("wide", PARTITIONS, 3)
    killed = cluster.lose(3)
    eventually(lambda: 3 not in cluster.members[1].live(), "it is buried")
    before = incarnations(cluster)
    cluster.start(killed)
    after = incarnations(cluster)
    assert after == {**before, 3: ("alive", before[3][1] + 1)}, "its own start, and nobody's refutation"
