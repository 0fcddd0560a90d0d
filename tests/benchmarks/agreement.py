"""Brokers whose agreement is timed: processes that are killed and started again, and asked what they know."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import grpc.aio

from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.brokerlab_pb2_grpc import AdminStub
from workloads.processes.ports import free_ports
from workloads.processes.process import Process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from brokers.rpc.brokerlab_pb2_grpc import AdminAsyncStub

BROKERS: Final = 3
PARTITIONS: Final = 3
REPLICAS: Final = 2
AGREE_WITHIN_S: Final = 60.0
# Between two questions to a broker: often enough to time milliseconds, seldom enough to leave the broker its time.
LOOK_EVERY_S: Final = 0.001
QUIET_LOOKS: Final = 5  # at what was counted, so far apart as a heartbeat of dsbs, without a change
QUIET_LOOK_S: Final = 0.2
HEARTBEATS: Final = frozenset({"heartbeat", "here"})


class NeverAgreed(Exception):
    """The brokers did not come to know of a change."""


class Seen(NamedTuple):
    """What a broker says that it knows: who lives, and who leads each topic's partitions."""

    live: frozenset[int]
    leaders: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Spent:
    """On coordination since a broker's start, but for heartbeats."""

    requests: int
    bytes: int

    def since(self, before: Spent | None) -> Spent:
        return self if before is None else Spent(self.requests - before.requests, self.bytes - before.bytes)


class Brokers:
    """`coordinator` is what their config files say under that name."""

    def __init__(self, folder: Path, coordinator: Mapping[str, Any]) -> None:
        self._folder = folder
        self._coordinator = coordinator
        ports = free_ports(2 * BROKERS)
        self._rows: dict[int, dict[str, Any]] = {
            n: {"id": n, "host": "127.0.0.1", "kafka_port": ports[2 * n - 2], "rpc_port": ports[2 * n - 1]}
            for n in range(1, BROKERS + 1)
        }
        self._processes: dict[int, Process] = {}
        self._channels: dict[int, grpc.aio.Channel] = {}

    # --- life ---------------------------------------------------------------------------------------------

    async def start_all(self) -> None:
        await asyncio.gather(*(self.start(number) for number in self._rows))
        await self.agreed_on(lambda seen: len(seen.live) == BROKERS or self._coordinator["name"] == "static")

    async def start(self, number: int) -> float:
        """Return when it serves; the answer is when, by `perf_counter`, it could be reached, which is just before it
        begins to join. What comes before that is Python's start, and the same in every architecture."""
        config = self._folder / f"broker-{number}.json"
        content = {
            "broker": number,
            "brokers": list(self._rows.values()),
            "data_dir": str(self._folder / f"broker-{number}"),
            "coordinator": dict(self._coordinator),
        }
        config.write_text(json.dumps(content))
        process = await Process.start(
            f"broker-{number}",
            [sys.executable, "-m", "brokers", str(config)],
            self._folder / f"broker-{number}.log",
            spoken_with=True,
        )
        self._processes[number] = process
        port: int = self._rows[number]["rpc_port"]
        reached = await _reached(port, process)
        await process.read_line()
        self._channels[number] = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
        return reached

    async def kill(self, number: int) -> None:
        process = self._processes.pop(number)
        process.kill()
        await process.ended()
        await self._channels.pop(number).close()

    async def stop(self) -> None:
        for channel in self._channels.values():
            await channel.close()
        await asyncio.gather(*(process.stop() for process in self._processes.values()))

    # --- questions ----------------------------------------------------------------------------------------

    async def create(self, topic: str) -> None:
        request = pb.CreateTopicRequest(name=topic, partitions=PARTITIONS, replication_factor=REPLICAS)
        answer = await AdminStub(next(iter(self._channels.values()))).CreateTopic(request)
        if answer.HasField("error"):
            raise NeverAgreed(f"topic {topic!r} cannot be made: {answer.error.message}")

    async def agreed_on(self, holds: Callable[[Seen], bool]) -> float:
        """When, by `perf_counter`, the last of the brokers showed it. Raises `NeverAgreed`."""
        try:
            async with asyncio.timeout(AGREE_WITHIN_S):
                return max(await asyncio.gather(*(_shown(AdminStub(one), holds) for one in self._channels.values())))
        except TimeoutError:
            raise NeverAgreed(f"some broker did not know of a change within {AGREE_WITHIN_S:.0f} s") from None

    async def settled(self) -> dict[int, Spent]:
        """What each broker has spent, when nobody spends any more."""
        looks: list[dict[int, Spent]] = []
        async with asyncio.timeout(AGREE_WITHIN_S):
            while len(looks) < QUIET_LOOKS or any(look != looks[-1] for look in looks[-QUIET_LOOKS:]):
                await asyncio.sleep(QUIET_LOOK_S)
                looks.append({number: await _spent(AdminStub(one)) for number, one in self._channels.items()})
        return looks[-1]


async def _reached(port: int, process: Process) -> float:
    while process.running:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(LOOK_EVERY_S)
        else:
            writer.close()
            break
    return perf_counter()


async def _shown(admin: AdminAsyncStub, holds: Callable[[Seen], bool]) -> float:
    while not holds(await _seen(admin)):  # noqa: ASYNC110 - it tells nobody of a change
        await asyncio.sleep(LOOK_EVERY_S)
    return perf_counter()


async def _seen(admin: AdminAsyncStub) -> Seen:
    """Without a name in the question: a broker that is asked for a topic by name may go and look for it."""
    cluster = await admin.DescribeCluster(pb.DescribeClusterRequest())
    topics = await admin.DescribeTopics(pb.DescribeTopicsRequest())
    leaders = {topic.name: tuple(partition.leader for partition in topic.partitions) for topic in topics.topics}
    return Seen(frozenset(broker.id for broker in cluster.brokers), leaders)


async def _spent(admin: AdminAsyncStub) -> Spent:
    statistics = await admin.Statistics(pb.StatisticsRequest())
    rows = [row for row in statistics.coordination if row.operation not in HEARTBEATS]
    return Spent(sum(row.count for row in rows), sum(row.bytes for row in rows))
