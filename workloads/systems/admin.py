"""The runner's own hand on our brokers: their own service, whatever drives them."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Final

from brokers.rpc import brokerlab_pb2 as pb
from workloads.clients.drivers.api import BrokerStatistics, DriverError
from workloads.clients.drivers.grpc import CALL_WITHIN_S, Cluster, called, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KNOWN_WITHIN_S: Final = 10.0
KNOWN_POLL_S: Final = 0.005


class Administered:
    """The part of a system (`workloads.systems.api`) that is no process: its topics and counters, by the admin service
    of our brokers."""

    def __init__(self) -> None:
        self._brokers: Cluster | None = None

    def connect(self, bootstrap: Sequence[str], proxy: str | None = None) -> None:
        self._brokers = Cluster(bootstrap, proxy)

    async def disconnect(self) -> None:
        if self._brokers is not None:
            await self._brokers.connections.close()
        self._brokers = None

    @property
    def cluster(self) -> Cluster:
        """The brokers, asked only while the system runs."""
        assert self._brokers is not None, "it has been connected"
        return self._brokers

    async def create_topic(self, topic: str, partitions: int, replication_factor: int, fetch_records_max: int) -> None:
        request = pb.CreateTopicRequest(
            name=topic,
            partitions=partitions,
            replication_factor=replication_factor,
            settings=pb.TopicSettings(fetch_records_max=fetch_records_max),
        )
        first, *_ = addresses = list((await self.cluster.addresses()).values())
        answer = await called(self.cluster.connections.admin(first).CreateTopic(request, timeout=CALL_WITHIN_S))
        refuse(answer.error, f"making topic {topic!r}")
        for address in addresses:
            await self._heard(topic, address, pb.OK)

    async def delete_topic(self, topic: str) -> None:
        request = pb.DeleteTopicRequest(name=topic)
        first, *_ = addresses = list((await self.cluster.addresses()).values())
        answer = await called(self.cluster.connections.admin(first).DeleteTopic(request, timeout=CALL_WITHIN_S))
        refuse(answer.error, f"deleting topic {topic!r}")
        for address in addresses:
            await self._heard(topic, address, pb.UNKNOWN_TOPIC)

    async def _heard(self, topic: str, address: str, word: pb.ErrorCode.ValueType) -> None:
        """Wait until a broker says of a topic what all will say soon: that there is one, or none."""
        request = pb.DescribeTopicsRequest(names=[topic])
        deadline = monotonic() + KNOWN_WITHIN_S
        while True:
            answer = await called(
                self.cluster.connections.admin(address).DescribeTopics(request, timeout=CALL_WITHIN_S)
            )
            if answer.error.code == word:
                return
            if answer.error.code not in {pb.OK, pb.UNKNOWN_TOPIC} or monotonic() > deadline:
                refuse(answer.error, f"topic {topic!r} at {address}")
                raise DriverError(f"topic {topic!r} is still there at {address}")
            await asyncio.sleep(KNOWN_POLL_S)

    async def leaders(self, topic: str) -> Mapping[int, int]:
        return {part.number: part.leader for part in (await self.cluster.topic(topic)).partitions}

    async def lives(self, topic: str) -> Mapping[int, str]:
        addresses = await self.cluster.addresses()
        return {broker: (await self.cluster.topic(topic, address)).life for broker, address in addresses.items()}

    async def end_offsets(self, topic: str) -> Mapping[int, int]:
        addresses = await self.cluster.addresses()
        ends: dict[int, int] = {}
        for broker, address in addresses.items():
            for part in (await self.cluster.topic(topic, address)).partitions:
                if part.leader == broker:
                    ends[part.number] = part.end_offset
        return ends

    async def statistics(self) -> Sequence[BrokerStatistics]:
        found = []
        for address in (await self.cluster.addresses()).values():
            stub = self.cluster.connections.admin(address)
            answer = await called(stub.Statistics(pb.StatisticsRequest(), timeout=CALL_WITHIN_S))
            operations = {o.operation: (o.requests, o.messages, o.bytes) for o in answer.operations}
            coordination = {o.operation: (o.count, o.bytes, o.wait_ns) for o in answer.coordination}
            found.append(BrokerStatistics(answer.broker, operations, coordination, answer.coordination_cpu_ns))
        return found
