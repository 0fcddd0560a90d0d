"""A broker process that is sent as many records in one gRPC request as it takes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.answers import ITEMS_MAX
from tests.integration.processes.running import PATIENCE_S, RunningBroker

# Requests of another client that are answered while one is encoded.
SERVED_MIN = 10


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    made = RunningBroker(tmp_path_factory.mktemp("records"))
    made.start()
    created = made.admin_stub().CreateTopic(pb.CreateTopicRequest(name="t", partitions=1, replication_factor=1))
    assert created.error.code == pb.OK
    yield made
    made.stop()


def test_as_many_records_as_one_request_may_have_are_taken_while_others_are_served(broker: RunningBroker) -> None:
    large = pb.ProduceRequest(topic="t", acks=1, records=[pb.Record(value=b"v")] * ITEMS_MAX)
    data, admin = broker.data_stub(), broker.admin_stub()
    taken = data.Produce.future(large, timeout=PATIENCE_S)
    served = 0
    while not taken.done():
        assert admin.DescribeCluster(pb.DescribeClusterRequest(), timeout=PATIENCE_S).me == 1
        served += 1
    assert taken.result().base_offset == 0
    assert data.Produce(pb.ProduceRequest(topic="t", acks=1, records=[pb.Record()])).base_offset == ITEMS_MAX
    assert served >= SERVED_MIN
