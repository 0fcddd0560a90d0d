"""The rules by which `brokerlab scale` extrapolates ZooKeeper's costs, against what a real server is asked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import pytest

from coordinators.placement import place
from tests.contract.backend import asynchronous, eventually, until
from tests.contract.backends.zookeeper import end_session, session_of
from tests.integration.zookeeper.brokers import Group, group
from workloads.scale import MEASURED, PARTITIONS, ZOOKEEPER, Operations, Size

if TYPE_CHECKING:
    from coordinators.zookeeper.coordinator import ZooKeeperCoordinator
    from tests.contract.servers import Server

pytestmark = pytest.mark.java
REPLICAS = 3
BYTES_WITHIN = 0.1
SETTLED_AFTER = 60  # looks at which nothing had changed
LONG_MS = 20_000  # a session of which nothing is renewed meanwhile


class Count(NamedTuple):
    requests: int
    bytes: int
    watches: int

    def since(self, before: Count) -> Count:
        return Count(*(now - then for now, then in zip(self, before, strict=True)))


class Counted:
    """Brokers of one cluster, and all that they ask ZooKeeper but for their heartbeats."""

    def __init__(self, brokers: Group) -> None:
        self._group = brokers
        self._fired = 0
        self.running: dict[int, ZooKeeperCoordinator] = {}
        self._counted: list[ZooKeeperCoordinator] = []

    async def start(self, number: int) -> None:
        coordinator = self._group.made(number, session_timeout_ms=LONG_MS)
        told = session_of(coordinator).on_watch

        def fired(path: str) -> None:
            self._fired += 1
            told(path)

        session_of(coordinator).on_watch = fired
        self._counted.append(coordinator)
        await coordinator.start()
        self.running[number] = coordinator

    async def end(self, number: int, address: str) -> None:
        """Its session ends; that costs the others, and not itself."""
        victim = self.running.pop(number)
        known = session_of(victim).client.kazoo.client_id
        session_of(victim).client.abandon()
        await asyncio.to_thread(end_session, address, known)

    async def settled(self) -> Count:
        """What was asked so far, when nothing more is."""
        for broker in self.running.values():
            await until(broker, lambda view: view.brokers.keys() == self.running.keys())
        seen: list[Count] = []

        def quiet() -> bool:
            seen.append(self._total())
            idle = all(session_of(broker).client.oldest is None for broker in self.running.values())
            return idle and len(seen) > SETTLED_AFTER and len(set(seen[-SETTLED_AFTER:])) == 1

        await eventually(quiet)
        return seen[-1]

    def _total(self) -> Count:
        costs = [cost for b in self._counted for kind, cost in b.meter.snapshot().items() if kind != "heartbeat"]
        return Count(sum(cost[0] for cost in costs), sum(cost[1] for cost in costs), self._fired)


def evenly_led(topics: int, brokers: int) -> list[str]:
    """Names of topics of which the last broker leads its share of the partitions, no more and no less."""
    share = round(topics * PARTITIONS / brokers)
    names = [f"topic-{number}" for number in range(100 * topics)]
    led = [name for name in names if leads(name, brokers)]
    rest = [name for name in names if not leads(name, brokers)]
    return led[:share] + rest[: topics - share]


def leads(topic: str, brokers: int) -> bool:
    """Whether the last broker leads one of the topic's partitions; it leads no two of them."""
    placed = place(topic, PARTITIONS, REPLICAS, range(1, brokers + 1))
    return any(partition.leader == brokers for partition in placed)


@pytest.mark.parametrize(("brokers", "topics"), sorted(MEASURED))
@asynchronous
async def test_the_rules_give_what_a_real_server_is_asked(server: Server, brokers: int, topics: int) -> None:
    async with group(server.address) as cluster:
        counted = Counted(cluster)
        for number in range(1, brokers + 1):
            await counted.start(number)
        for name in evenly_led(topics, brokers):
            await counted.running[1].create_topic(name, PARTITIONS, REPLICAS)
        found: dict[str, Count] = {}

        before = await counted.settled()
        await counted.running[1].create_topic("new", PARTITIONS, REPLICAS)
        found["topic created"] = (await counted.settled()).since(before)

        await counted.running[1].delete_topic("new")
        before = await counted.settled()
        await counted.end(brokers, server.address)
        found["broker dies"] = (await counted.settled()).since(before)

        before = await counted.settled()
        await counted.start(brokers + 1)  # not the one that died, which would lead again what it led
        found["broker joins"] = (await counted.settled()).since(before)

        for change, cost in found.items():
            rule = ZOOKEEPER[change](Size(brokers, topics, 0))
            assert (cost.requests, cost.watches) == (rule.requests, rule.watches), change
            assert cost.bytes == pytest.approx(without_watches(rule), rel=BYTES_WITHIN), change


def without_watches(rule: Operations) -> int:
    """The meter does not see those."""
    return rule._replace(watches=0).bytes
