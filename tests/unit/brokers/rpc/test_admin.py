"""The administration service where the coordination layer cannot answer."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from brokers.metrics import Metrics
from brokers.replication.store import Store
from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.admin import AdminService
from brokers.topics import TopicAdmin
from coordinators.api import Coordinator
from coordinators.errors import Unavailable
from coordinators.model import Broker, ClusterView

CONTEXT: Any = None


class Alone:
    """A coordinator that knows no live broker."""

    me = Broker(1, "127.0.0.1", 1, 2)

    def view(self) -> ClusterView:
        return ClusterView(0)

    def group_coordinator(self, group: str) -> int:
        raise Unavailable("no live broker is known")


def test_a_group_that_nobody_serves_is_an_error_in_the_answer() -> None:
    nothing: Any = None
    service = AdminService(
        cast("Store", nothing), cast("TopicAdmin", nothing), cast("Coordinator", Alone()), "static", Metrics()
    )
    answer = asyncio.run(service.DescribeCluster(pb.DescribeClusterRequest(group="g"), CONTEXT))
    assert answer.error.code == pb.COORDINATOR_UNAVAILABLE
    assert not asyncio.run(service.DescribeCluster(pb.DescribeClusterRequest(), CONTEXT)).HasField("error")
