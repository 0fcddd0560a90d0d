"""What the fake can do beyond the contract's suite: the faults that it plays at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from coordinators.errors import OutcomeUnknown, StaleEpoch, Unavailable
from coordinators.freshness import Doubt
from coordinators.model import Committed, TopicPartition
from tests.contract.backend import addressed, asynchronous
from tests.contract.memory import MemoryCluster, MemoryCoordinator

if TYPE_CHECKING:
    from coordinators.model import Partition

AT = TopicPartition("orders", 0)


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


async def started(cluster: MemoryCluster) -> dict[int, MemoryCoordinator]:
    brokers = {number: MemoryCoordinator(addressed(number), cluster) for number in (1, 2, 3)}
    for broker in brokers.values():
        await broker.start()
    return brokers


@asynchronous
async def test_a_broker_that_is_cut_off_leads_until_its_lease_ends() -> None:
    clock = Clock()
    cluster = MemoryCluster(clock=clock, lease_s=5)
    brokers = await started(cluster)
    leader = brokers[(await brokers[1].create_topic("orders", 1, 3)).topic.partitions[0].leader]
    clock.now_s = 100
    cluster.cut_off(leader.me.id)
    clock.now_s = 104.9
    assert leader.known_leader(AT) is not None
    clock.now_s = 105
    with pytest.raises(Unavailable):
        leader.known_leader(AT)


@asynchronous
async def test_a_broker_whose_lease_has_ended_begins_nothing_that_only_a_leader_or_a_groups_home_may() -> None:
    """Though the cluster would still hear it: its own clock is what tells."""
    clock = Clock()
    cluster = MemoryCluster(clock=clock, lease_s=5)
    broker = NeverHeard(addressed(1), cluster)
    await broker.start()
    await broker.create_topic("orders", 1, 1)
    clock.now_s = 4.9
    await broker.change_in_sync(AT, {1}, 0)
    await broker.commit_offsets("readers", {AT: Committed(1)})
    clock.now_s = 5
    with pytest.raises(Unavailable):
        await broker.change_in_sync(AT, {1}, 0)
    with pytest.raises(Unavailable):
        broker.begin_commit("readers", {AT: Committed(2)})
    with pytest.raises(Unavailable):
        await broker.committed_offsets("readers")
    assert cluster.offsets == {"readers": {AT: Committed(1)}}


@asynchronous
async def test_a_broker_that_was_stopped_does_not_serve_by_a_look_at_the_clock_of_before() -> None:
    clock = Clock()
    broker = MemoryCoordinator(addressed(1), MemoryCluster(clock=clock))
    await broker.start()
    broker._doubt = Doubt(0.5)
    broker._doubt.tick(clock.now_s)
    broker._doubt.trust(clock.now_s, broker._doubt.naps)
    clock.now_s = 0.4
    assert broker.serves()
    clock.now_s = 0.5
    assert broker._doubt.sure, "it has not looked at the clock since"
    assert not broker.serves()


class NeverHeard(MemoryCoordinator):
    """In touch, with a lease that nothing renews."""

    @property
    def lease_ends(self) -> float:
        return self._cluster.lease_s


@asynchronous
async def test_a_broker_that_is_cut_off_changes_nothing_and_learns_nothing() -> None:
    cluster = MemoryCluster()
    brokers = await started(cluster)
    await brokers[1].create_topic("orders", 1, 1)
    cluster.cut_off(2)
    await brokers[1].delete_topic("orders")
    assert "orders" in brokers[2].view().topics
    served = next(group for group in map(str, range(100)) if brokers[2].group_coordinator(group) == 2)
    for verb in (
        brokers[2].create_topic("more", 1, 1),
        brokers[2].delete_topic("orders"),
        brokers[2].resign(AT, 0),
        brokers[2].commit_offsets(served, {AT: Committed(1)}),
    ):
        with pytest.raises(Unavailable):
            await verb


@asynchronous
async def test_a_broker_that_comes_back_finds_that_it_leads_no_more() -> None:
    cluster = MemoryCluster()
    brokers = await started(cluster)
    before = (await brokers[1].create_topic("orders", 1, 3)).topic.partitions[0]
    old = brokers[before.leader]
    before = await old.change_in_sync(AT, before.replicas, before.epoch)
    cluster.expire(before.leader)
    assert old.view().partition(AT) == before, "it has heard of nothing"
    await old.start()
    assert old.view().partition(AT).leader == before.replicas[1]
    with pytest.raises(StaleEpoch):
        await old.change_in_sync(AT, before.replicas, before.epoch)


@asynchronous
async def test_a_change_whose_answer_is_lost_has_happened() -> None:
    cluster = MemoryCluster()
    brokers = await started(cluster)
    cluster.lose_answer(1)
    with pytest.raises(OutcomeUnknown) as error:
        await brokers[1].create_topic("orders", 1, 1)
    assert not error.value.definite
    assert "orders" in brokers[2].view().topics


class LooksUp(MemoryCoordinator):
    """Knows no leader by itself, and has its answer when the test says so."""

    def __init__(self, number: int, cluster: MemoryCluster) -> None:
        super().__init__(addressed(number), cluster)
        self.answered = asyncio.Event()

    def _known_leader(self, at: TopicPartition) -> Partition | None:  # type: ignore[override] # as the contract allows
        return None

    async def _find_leader(self, at: TopicPartition) -> Partition:
        await self.answered.wait()
        return self.view().partition(at)


@pytest.mark.parametrize("still_leads", [True, False])
@asynchronous
async def test_a_look_up_that_took_longer_than_the_lease_is_no_answer(still_leads: bool) -> None:
    clock = Clock()
    cluster = MemoryCluster(clock=clock, lease_s=5)
    broker = LooksUp(1, cluster)
    await broker.start()
    await broker.create_topic("orders", 1, 1)
    cluster.cut_off(1)
    asking = asyncio.ensure_future(broker.find_leader(AT))
    await asyncio.sleep(0)
    clock.now_s = 4.9 if still_leads else 5
    broker.answered.set()
    if still_leads:
        assert (await asking).leader == 1
    else:
        with pytest.raises(Unavailable):
            await asking
