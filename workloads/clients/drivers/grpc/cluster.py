"""The cluster as the driver `grpc` and the runner's own hand see it: connections, and who leads what."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

import grpc
import grpc.aio

from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.brokerlab_pb2_grpc import AdminStub, DataStub
from workloads.clients.drivers.api import DriverError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from brokers.rpc.brokerlab_pb2_grpc import AdminAsyncStub, DataAsyncStub

T = TypeVar("T")

CONNECT_WITHIN_S: Final = 10.0
CALL_WITHIN_S: Final = 30.0
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", 128 * 1024 * 1024),
    ("grpc.max_send_message_length", 128 * 1024 * 1024),
)


class Connections:
    """Channels to brokers by address; opened when first used, closed together."""

    def __init__(self, proxy: str | None = None) -> None:
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._options = _OPTIONS if proxy is None else (*_OPTIONS, ("grpc.http_proxy", proxy))

    def _channel(self, address: str) -> grpc.aio.Channel:
        if address not in self._channels:
            self._channels[address] = grpc.aio.insecure_channel(address, options=self._options)
        return self._channels[address]

    def admin(self, address: str) -> AdminAsyncStub:
        return AdminStub(self._channel(address))

    async def data(self, address: str) -> DataAsyncStub:
        """The data service of a broker, connected."""
        channel = self._channel(address)
        try:
            await asyncio.wait_for(channel.channel_ready(), CONNECT_WITHIN_S)
        except TimeoutError:
            raise DriverError(f"no answer from {address} within {CONNECT_WITHIN_S:.0f} s") from None
        return DataStub(channel)

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()


async def called(call: Awaitable[T]) -> T:
    """Await a call's answer. Raises `DriverError` where there is none."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise DriverError(f"{error.code().name.lower()}: {error.details()}") from error


class Cluster:
    """The cluster as a client sees it: who leads what, at which address."""

    def __init__(self, bootstrap: Sequence[str], proxy: str | None = None) -> None:
        self._bootstrap = bootstrap
        self.connections = Connections(proxy)

    async def describe(self, group: str = "") -> pb.DescribeClusterResponse:
        address = self._bootstrap[0]
        request = pb.DescribeClusterRequest(group=group)
        answer = await called(self.connections.admin(address).DescribeCluster(request, timeout=CALL_WITHIN_S))
        refuse(answer.error, f"the cluster as {address} knows it")
        return answer

    async def addresses(self) -> dict[int, str]:
        return {broker.id: f"{broker.host}:{broker.rpc_port}" for broker in (await self.describe()).brokers}

    async def topic(self, name: str, address: str | None = None) -> pb.Topic:
        """A topic as one broker knows it. Raises `DriverError` where it does not."""
        stub = self.connections.admin(address or self._bootstrap[0])
        answer = await called(stub.DescribeTopics(pb.DescribeTopicsRequest(names=[name]), timeout=CALL_WITHIN_S))
        refuse(answer.error, f"topic {name!r}")
        return answer.topics[0]

    async def leaders(self, topic: str) -> dict[int, DataAsyncStub]:
        """Partition -> data service of its leader."""
        found = await self.leader_addresses(topic)
        return {number: await self.connections.data(address) for number, address in found.items()}

    async def leader_addresses(self, topic: str) -> dict[int, str]:
        addresses = await self.addresses()
        partitions = (await self.topic(topic)).partitions
        for part in partitions:
            if part.leader not in addresses:
                raise DriverError(f"{topic}-{part.number} has no leader that lives: broker {part.leader} is not there")
        return {part.number: addresses[part.leader] for part in partitions}

    async def group_home(self, group: str) -> DataAsyncStub:
        found = await self.describe(group)
        address = next(f"{b.host}:{b.rpc_port}" for b in found.brokers if b.id == found.group_coordinator)
        return await self.connections.data(address)


def refuse(error: pb.Error, what: str) -> None:
    """Raise where an answer carries an error."""
    if error.code != pb.OK:
        raise DriverError(f"{what}: {error.message} ({pb.ErrorCode.Name(error.code)})")
