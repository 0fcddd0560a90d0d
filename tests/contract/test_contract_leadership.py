"""What every back end must do (coordinators/api.py): leadership."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from coordinators.errors import (
    InvalidRequest,
    StaleEpoch,
    UnknownTopic,
    Unsupported,
)
from coordinators.leadership import succession
from coordinators.model import NO_LEADER, TopicPartition
from tests.contract.asking import (
    AT,
    all_in_sync,
    by_id,
    everywhere,
    leads,
    led_by,
    made_everywhere,
    others,
)
from tests.contract.backend import until
from tests.contract.suite import contract

if TYPE_CHECKING:
    from coordinators.model import ClusterView, Partition
    from tests.contract.backend import Backend


@contract()
async def test_every_broker_names_the_same_leader(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 2)
    assert len(await everywhere(brokers)) == 1


@contract()
async def test_of_a_new_topic_the_leader_alone_is_in_sync_on_every_broker(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 3)
    for broker in brokers:
        found = await led_by(broker)
        assert (found.leader, found.in_sync) == (found.replicas[0], found.replicas[:1])


@contract("passes_leadership")
async def test_nobody_leads_without_the_data_and_the_leader_that_returns_does(cluster: Backend) -> None:
    """However it went: killed, or stopped in an orderly way."""
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 3)
    before = await led_by(brokers[0])
    for end in (cluster.kill, lambda coordinator: coordinator.stop()):
        leader = by_id(brokers, before.leader)
        rest = others(brokers, leader)
        await end(leader)
        for broker in rest:
            await until(broker, lambda view: leads(view, NO_LEADER))
        brokers = [*rest, await cluster.start(before.leader)]
        for broker in brokers:
            await until(broker, partial(_leads_since, before))
        before = await led_by(brokers[0])


def _leads_since(before: Partition, view: ClusterView) -> bool:
    """Whether the leader leads anew, and nobody else has come to be in sync."""
    now = view.partition(AT) if AT.topic in view.topics else before
    return now.epoch > before.epoch and replace(now, epoch=before.epoch) == before


@contract("passes_leadership")
async def test_a_dead_leaders_partition_passes_to_the_next_in_placement_order_at_a_higher_epoch(
    cluster: Backend,
) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 3)
    before = await all_in_sync(brokers)
    await cluster.kill(by_id(brokers, before.leader))
    heir = before.replicas[1]
    for broker in others(brokers, by_id(brokers, before.leader)):
        await until(broker, lambda view: leads(view, heir))
        after = await led_by(broker)
        assert after.epoch > before.epoch
        assert after == replace(before, leader=heir, epoch=after.epoch, in_sync=before.replicas[1:])


@contract("passes_leadership")
async def test_a_replica_that_is_out_of_sync_does_not_lead(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 3)
    before = await led_by(brokers[0])
    leader = by_id(brokers, before.leader)
    heir = before.replicas[2]
    await leader.change_in_sync(AT, {before.leader, heir}, before.epoch)
    for broker in others(brokers, leader):
        await until(
            broker, lambda view: AT.topic in view.topics and len(view.topics[AT.topic].partitions[0].in_sync) == 2
        )
    await cluster.kill(leader)
    for broker in others(brokers, leader):
        await until(broker, lambda view: leads(view, heir))


@contract("passes_leadership")
async def test_nobody_leads_while_no_replica_in_sync_is_live_and_the_first_to_return_does(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 1)
    before = await led_by(brokers[0])
    dead = by_id(brokers, before.leader)
    await cluster.kill(dead)
    for broker in others(brokers, dead):
        await until(broker, lambda view: leads(view, NO_LEADER))
    await cluster.start(dead.me.id)
    for broker in others(brokers, dead):
        view = await until(broker, lambda view: leads(view, dead.me.id) and view.partition(AT).epoch > before.epoch)
        assert view.partition(AT).in_sync == before.in_sync


@contract("passes_leadership")
async def test_an_orderly_stop_passes_leadership_on(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 2)
    before = await all_in_sync(brokers)
    leaving = by_id(brokers, before.leader)
    await leaving.stop()
    for broker in others(brokers, leaving):
        view = await until(broker, lambda view: leads(view, before.replicas[1]))
        assert view.topics[AT.topic].partitions[0].epoch > before.epoch


@contract("passes_leadership")
async def test_a_follower_that_dies_changes_no_leadership(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 2)
    before = await all_in_sync(brokers)
    leader, follower = (by_id(brokers, broker_id) for broker_id in before.replicas)
    await cluster.kill(follower)
    view = await until(leader, lambda view: follower.me.id not in view.brokers)
    assert view.topics[AT.topic].partitions[0] == before


@contract("passes_leadership")
async def test_a_leader_changes_who_is_in_sync_and_keeps_its_epoch(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 3)
    before = await led_by(brokers[0])
    leader = by_id(brokers, before.leader)
    grown = await leader.change_in_sync(AT, set(before.replicas), before.epoch)
    assert grown == replace(before, in_sync=before.replicas)
    assert leader.view().topics[AT.topic].partitions[0] == grown
    assert await leader.change_in_sync(AT, {before.leader}, before.epoch) == before


@contract("passes_leadership")
async def test_in_sync_replicas_are_changed_by_the_leader_at_its_epoch_alone(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 2)
    before = await led_by(brokers[0])
    leader, follower = (by_id(brokers, broker_id) for broker_id in before.replicas)
    await until(follower, lambda view: AT.topic in view.topics)
    for broker, epoch in ((follower, before.epoch), (leader, before.epoch + 1), (leader, before.epoch - 1)):
        with pytest.raises(StaleEpoch):
            await broker.change_in_sync(AT, {broker.me.id}, epoch)
    assert await everywhere(brokers) == {before}


@contract("passes_leadership")
async def test_in_sync_replicas_are_replicas_and_the_leader_is_among_them(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 2)
    before = await led_by(brokers[0])
    leader = by_id(brokers, before.leader)
    stranger = ({1, 2, 3} - set(before.replicas)).pop()
    for in_sync in ({before.leader, stranger}, {before.replicas[1]}, set()):
        with pytest.raises(InvalidRequest, match=AT.topic):
            await leader.change_in_sync(AT, in_sync, before.epoch)
    with pytest.raises(UnknownTopic):
        await leader.change_in_sync(TopicPartition("none", 0), {1}, 0)


@contract("passes_leadership")
async def test_a_leader_that_resigns_hands_over_to_its_successor_once(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 3)
    before = await all_in_sync(brokers)
    leader = by_id(brokers, before.leader)
    after = await leader.resign(AT, before.epoch)
    assert after.epoch > before.epoch
    assert after == replace(succession(before, before.replicas[1:]), epoch=after.epoch)
    with pytest.raises(StaleEpoch):
        await leader.resign(AT, before.epoch)
    for broker in brokers:
        await until(broker, lambda view: leads(view, after.leader))


@contract("passes_leadership")
async def test_an_earlier_leader_changes_nothing(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 2)
    before = await all_in_sync(brokers)
    leader = by_id(brokers, before.leader)
    after = await leader.resign(AT, before.epoch)
    with pytest.raises(StaleEpoch):
        await leader.change_in_sync(AT, set(before.replicas), before.epoch)
    for broker in brokers:
        await until(broker, lambda view: AT.topic in view.topics and view.topics[AT.topic].partitions[0] == after)


@contract()
async def test_an_architecture_that_cannot_pass_leadership_says_so(cluster: Backend) -> None:
    if cluster.passes_leadership:
        return
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 2)
    before = await led_by(brokers[0])
    with pytest.raises(Unsupported):
        await brokers[0].resign(AT, before.epoch)
    with pytest.raises(Unsupported):
        await brokers[0].change_in_sync(AT, set(before.replicas), before.epoch)
