"""The gRPC administration service: the cluster, its topics, this broker's counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.answers import REFUSALS, error_of, settings_of, topic_of
from brokers.rpc.brokerlab_pb2_grpc import AdminServicer
from coordinators.errors import InvalidRequest, UnknownTopic
from coordinators.model import group_name_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    import grpc.aio

    from brokers.metrics import Metrics
    from brokers.replication.store import Store
    from brokers.topics import TopicAdmin
    from coordinators.api import Coordinator

# Names in one request: as they are sent, and different ones; each of these may have to be asked for elsewhere.
NAMES_MAX: Final = 100_000
TOPICS_MAX: Final = 10_000


class AdminService(AdminServicer):
    def __init__(
        self, store: Store, topics: TopicAdmin, coordinator: Coordinator, coordinator_name: str, metrics: Metrics
    ) -> None:
        self._store = store
        self._topics = topics
        self._coordinator = coordinator
        self._coordinator_name = coordinator_name
        self._metrics = metrics

    async def DescribeCluster(  # noqa: N802 - the service's name
        self,
        request: pb.DescribeClusterRequest,
        context: grpc.aio.ServicerContext[pb.DescribeClusterRequest, pb.DescribeClusterResponse],
    ) -> pb.DescribeClusterResponse:
        try:
            group_coordinator = self._group_coordinator(request.group)
        except REFUSALS as error:
            return pb.DescribeClusterResponse(error=error_of(error))
        view = self._coordinator.view()
        brokers = [
            pb.BrokerAddress(id=b.id, host=b.host, kafka_port=b.kafka_port, rpc_port=b.rpc_port)
            for _, b in sorted(view.brokers.items())
        ]
        return pb.DescribeClusterResponse(
            brokers=brokers,
            controller=view.controller,
            group_coordinator=group_coordinator,
            me=self._coordinator.me.id,
            coordinator=self._coordinator_name,
            view_version=view.version,
        )

    def _group_coordinator(self, group: str) -> int:
        """The broker that serves the group, -1 where no group is asked for. Raises `InvalidRequest`, `Unavailable`."""
        if not group:
            return -1
        if (fault := group_name_fault(group)) is not None:
            raise InvalidRequest(fault)
        return self._coordinator.group_coordinator(group)

    async def CreateTopic(  # noqa: N802 - the service's name
        self,
        request: pb.CreateTopicRequest,
        context: grpc.aio.ServicerContext[pb.CreateTopicRequest, pb.CreateTopicResponse],
    ) -> pb.CreateTopicResponse:
        try:
            created = await self._topics.create(
                request.name, request.partitions, request.replication_factor, settings_of(request.settings)
            )
        except REFUSALS as error:
            return pb.CreateTopicResponse(error=error_of(error))
        return pb.CreateTopicResponse(topic=topic_of(created.topic, self._store), known_to=sorted(created.known_to))

    async def DeleteTopic(  # noqa: N802 - the service's name
        self,
        request: pb.DeleteTopicRequest,
        context: grpc.aio.ServicerContext[pb.DeleteTopicRequest, pb.DeleteTopicResponse],
    ) -> pb.DeleteTopicResponse:
        try:
            await self._topics.delete(request.name)
        except REFUSALS as error:
            return pb.DeleteTopicResponse(error=error_of(error))
        return pb.DeleteTopicResponse()

    async def DescribeTopics(  # noqa: N802 - the service's name
        self,
        request: pb.DescribeTopicsRequest,
        context: grpc.aio.ServicerContext[pb.DescribeTopicsRequest, pb.DescribeTopicsResponse],
    ) -> pb.DescribeTopicsResponse:
        try:
            names = _different(request.names)
            await self._coordinator.find_topics(names)
        except REFUSALS as error:
            return pb.DescribeTopicsResponse(error=error_of(error))
        known = self._coordinator.view().topics
        missing = [name for name in names if name not in known]
        if missing:
            return pb.DescribeTopicsResponse(error=error_of(UnknownTopic(f"topic {missing[0]!r} is not known here")))
        return pb.DescribeTopicsResponse(topics=[topic_of(known[name], self._store) for name in names or sorted(known)])

    async def Statistics(  # noqa: N802 - the service's name
        self,
        request: pb.StatisticsRequest,
        context: grpc.aio.ServicerContext[pb.StatisticsRequest, pb.StatisticsResponse],
    ) -> pb.StatisticsResponse:
        kafka = self._metrics.kafka
        answer = pb.StatisticsResponse(
            broker=self._coordinator.me.id,
            kafka_requests=kafka.requests,
            refused=self._metrics.refused,
            connections=kafka.connections,
            connections_made=kafka.connections_made,
            connections_refused=kafka.connections_refused,
            connections_idle_closed=kafka.connections_idle_closed,
            coordination_cpu_ns=self._coordinator.client_cpu_ns,
            storage=self._metrics.notices.counts,
        )
        for name, count in (("produce", self._metrics.produce), ("fetch", self._metrics.fetch)):
            answer.operations.add(operation=name, requests=count.requests, messages=count.messages, bytes=count.bytes)
        for operation, (number, size, wait_ns) in sorted(self._coordinator.meter.snapshot().items()):
            answer.coordination.add(operation=operation, count=number, bytes=size, wait_ns=wait_ns)
        return answer


def _different(names: Sequence[str]) -> list[str]:
    """Each name once, in the order in which they came. Raises `InvalidRequest`."""
    if len(names) > NAMES_MAX:
        raise InvalidRequest(f"a request names at most {NAMES_MAX} topics, not {len(names)}")
    different = list(dict.fromkeys(names))
    if len(different) > TOPICS_MAX:
        raise InvalidRequest(f"a request names at most {TOPICS_MAX} different topics, not {len(different)}")
    return different
