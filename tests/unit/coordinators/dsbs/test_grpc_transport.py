"""DSBS over the real gRPC service, on real ports, in one process."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from pathlib import Path
from typing import Final

import grpc.aio

from brokers.rpc.peer import FRAME_BYTES_MAX, GrpcAsking, GrpcTransport, PeerService
from brokers.rpc.peer_pb2_grpc import add_PeerServicer_to_server, add_TablesServicer_to_server
from brokers.rpc.tables import TablesService, fetch
from coordinators.dsbs.coordinator import DsbsCoordinator
from coordinators.model import Broker, Committed, TopicPartition
from tests.contract.backend import WITHIN_S, Backend, asynchronous, eventually, until
from tests.contract.backends.dsbs import OPTIONS

HOST: Final = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    holders = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()
    return ports


class End:
    """A transport with its server, as a broker has them."""

    def __init__(self, port: int, *, tables: DsbsCoordinator | None = None) -> None:
        self.transport = GrpcTransport()
        self.received: asyncio.Queue[bytes] = asyncio.Queue()
        self.broker = Broker(1, HOST, 1, port)
        self.transport.listen(self.received.put_nowait)
        self._port = port
        self._tables = tables

    async def __aenter__(self) -> End:
        await self.serve()
        return self

    async def serve(self) -> None:
        options = [("grpc.max_receive_message_length", FRAME_BYTES_MAX + 1024), ("grpc.so_reuseport", 0)]
        self.server = grpc.aio.server(options=options)
        add_PeerServicer_to_server(PeerService(self.transport, GrpcAsking()), self.server)
        add_TablesServicer_to_server(TablesService(self._tables), self.server)
        self.server.add_insecure_port(f"{HOST}:{self._port}")
        await self.server.start()

    async def __aexit__(self, *_: object) -> None:
        await self.transport.close()
        await self.server.stop(None)


@asynchronous
async def test_frames_arrive_whole_and_in_their_order() -> None:
    here, there = free_ports(2)
    async with End(here) as one, End(there) as other:
        sent = [bytes([number % 256]) * number for number in range(100)]
        for frame in sent:
            one.transport.send(other.broker, frame)
        async with asyncio.timeout(WITHIN_S):
            assert [await other.received.get() for _ in sent] == sent


@asynchronous
async def test_a_peer_that_comes_back_is_reached_by_the_first_frame() -> None:
    """Though frame after frame was lost while it was away: it may wait for just this one to join."""
    here, there = free_ports(2)
    async with End(here) as one, End(there) as other:
        await other.server.stop(None)
        for _ in range(10):
            one.transport.send(other.broker, b"lost")
        await eventually(lambda: not one.transport._lines[HOST, there]._queue)
        await other.serve()
        one.transport.send(other.broker, b"found")
        async with asyncio.timeout(WITHIN_S):
            while await other.received.get() != b"found":
                pass


class OverGrpc(Backend):
    """Brokers whose frames go over gRPC."""

    name = "dsbs over gRPC"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        ports = free_ports(3)
        self.brokers = tuple(replace(b, rpc_port=port) for b, port in zip(self.brokers, ports, strict=True))
        self.ends: list[End] = []

    def made(self, me: Broker) -> DsbsCoordinator:
        end = End(me.rpc_port)
        self.ends.append(end)
        return DsbsCoordinator(replace(self.setup(me, **OPTIONS), peers=end.transport))

    async def kill(self, coordinator: object) -> None: ...

    async def close(self) -> None:
        await super().close()
        for end in self.ends:
            await end.__aexit__()


async def started(cluster: OverGrpc) -> list[DsbsCoordinator]:
    coordinators = [cluster.made(broker) for broker in cluster.brokers]
    for end in cluster.ends:
        await end.serve()
    await asyncio.gather(*(coordinator.start() for coordinator in coordinators))
    for coordinator in coordinators:
        await until(coordinator, lambda view: len(view.brokers) == 3)
    return coordinators


@asynchronous
async def test_three_brokers_over_grpc_agree_at_once_and_count_what_they_send() -> None:
    cluster = OverGrpc(Path())
    try:
        coordinators = await started(cluster)
        creation = await coordinators[0].create_topic("orders", 3, 3)
        assert creation.known_to == {1, 2, 3}
        assert len({coordinator.view().fingerprint() for coordinator in coordinators}) == 1
        sent = coordinators[0].meter.snapshot()
        assert sent["push"][0] >= 2
        assert sent["heartbeat"][0] >= 2
        assert sent["push"][1] > 0
    finally:
        for coordinator in coordinators:
            await coordinator.stop()
        await cluster.close()


@asynchronous
async def test_a_brokers_tables_can_be_read_over_grpc() -> None:
    cluster = OverGrpc(Path())
    try:
        coordinators = await started(cluster)
        await coordinators[0].create_topic("orders", 1, 2)
        home = next(one for one in coordinators if one.group_coordinator("readers") == one.me.id)
        await home.commit_offsets("readers", {TopicPartition("orders", 0): Committed(7)})
        (port,) = free_ports(1)
        async with End(port, tables=home):
            answer = await fetch(f"{HOST}:{port}")
        assert [(row.topic, row.partition) for row in answer.partitions] == [("orders", 0)]
        assert [(row.consumer, row.offset) for row in answer.offsets] == [("readers", 7)]
        assert [row.status for row in answer.brokers] == ["alive"] * 3
    finally:
        for coordinator in coordinators:
            await coordinator.stop()
        await cluster.close()


@asynchronous
async def test_a_broker_without_tables_says_so() -> None:
    (port,) = free_ports(1)
    async with End(port):
        answer = await fetch(f"{HOST}:{port}")
    assert "keeps no tables" in answer.error.message
