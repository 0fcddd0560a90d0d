"""What clients of real brokers are told of a topic with three replicas, of which nothing is copied yet."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.brokerlab_pb2_grpc import DataStub
from brokers.wire.errors import ErrorCode
from tests.integration.kafka.cluster import Cluster
from tests.integration.kafka.raw import RawClient, batch

PATIENCE_S = 60
BROKERS = {0, 1, 2}
# Who says what about how many must be in sync: the brokers' config, and the topic. Whether acks=all can be had then.
ASKED = [({}, {}, True), ({"min_insync_replicas": 2}, {}, False), ({}, {"min.insync.replicas": "2"}, False)]


@pytest.mark.parametrize(("defaults", "settings", "taken"), ASKED, ids=["nobody", "the brokers", "the topic"])
def test_the_leader_alone_is_in_sync_and_who_asks_for_more_is_refused(
    tmp_path: Path, defaults: dict[str, int], settings: dict[str, str], taken: bool
) -> None:
    with ExitStack() as stopping:
        cluster = Cluster(tmp_path, len(BROKERS), {"topics": defaults}).start()
        stopping.callback(cluster.stop)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("t", 1, len(BROKERS), config=settings)])["t"].result(PATIENCE_S)
        (partition,) = admin.list_topics("t", PATIENCE_S).topics["t"].partitions.values()
        assert set(partition.replicas) == BROKERS
        assert partition.isrs == [partition.leader]
        refused = ErrorCode.NONE if taken else ErrorCode.NOT_ENOUGH_REPLICAS
        with RawClient(cluster.port(partition.leader)) as client:
            assert client.produce("t", batch(b"of one"), acks=1)[0] == ErrorCode.NONE
            assert client.produce("t", batch(b"of all"), acks=-1)[0] == refused
            end = client.end_offset("t")
        with grpc.insecure_channel(f"127.0.0.1:{cluster.rows[partition.leader]['rpc_port']}") as channel:
            request = pb.ProduceRequest(topic="t", acks=-1, records=[pb.Record(value=b"of all")])
            error = DataStub(channel).Produce(request, timeout=PATIENCE_S).error
        assert error.code == (pb.OK if taken else pb.NOT_ENOUGH_REPLICAS)
        assert end == (2 if taken else 1), "what was refused is not stored"
