"""What every back end must do (coordinators/api.py). One back end's tests supply a cluster and nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import FrozenInstanceError, replace
from itertools import count
from typing import TYPE_CHECKING

import pytest

from coordinators.errors import (
    BrokerIdTaken,
    InvalidRequest,
    NotCoordinator,
    NotEnoughBrokers,
    StaleEpoch,
    TopicExists,
    UnknownTopic,
    Unsupported,
)
from coordinators.leadership import succession
from coordinators.model import NO_LEADER, Committed, Partition, TopicPartition, TopicSettings
from coordinators.placement import place
from tests.contract.backend import WITHIN_S, agreed, until
from tests.contract.suite import contract

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinators.api import Coordinator
    from coordinators.model import ClusterView
    from tests.contract.backend import Backend

AT = TopicPartition("orders", 0)


async def led_by(coordinator: Coordinator, at: TopicPartition = AT) -> Partition:
    """Who leads, as the path of a produce finds it."""
    found = coordinator.leader(at)
    return found if isinstance(found, Partition) else await found


async def everywhere(coordinators: Sequence[Coordinator], at: TopicPartition = AT) -> set[Partition]:
    return {await led_by(coordinator, at) for coordinator in coordinators}


async def made_everywhere(coordinators: Sequence[Coordinator], replication_factor: int, partitions: int = 1) -> None:
    """As a client does: on each broker that does not certainly know the topic by then."""
    known: frozenset[int] = frozenset()
    for coordinator in coordinators:
        if coordinator.me.id not in known:
            known |= (await coordinator.create_topic(AT.topic, partitions, replication_factor)).known_to


def by_id(coordinators: Sequence[Coordinator], broker_id: int) -> Coordinator:
    return next(coordinator for coordinator in coordinators if coordinator.me.id == broker_id)


def others(coordinators: Sequence[Coordinator], one: Coordinator) -> list[Coordinator]:
    return [coordinator for coordinator in coordinators if coordinator is not one]


def leads(view: ClusterView, broker_id: int, at: TopicPartition = AT) -> bool:
    topic = view.topics.get(at.topic)
    return topic is not None and topic.partitions[at.partition].leader == broker_id


def home_of(coordinators: Sequence[Coordinator], group: str) -> Coordinator:
    return by_id(coordinators, coordinators[0].group_coordinator(group))


async def committing(coordinators: Sequence[Coordinator], group: str = "readers") -> Coordinator:
    """A topic of three partitions, and the broker that serves the group."""
    await made_everywhere(coordinators, 1, partitions=3)
    home = home_of(coordinators, group)
    await until(home, lambda view: AT.topic in view.topics)
    return home


# --- membership ------------------------------------------------------------------------------------------------------


@contract()
async def test_a_broker_that_has_started_is_in_its_own_view(cluster: Backend) -> None:
    coordinator = await cluster.start(1)
    assert coordinator.view().brokers[1] == coordinator.me


@contract("shares")
async def test_a_broker_that_joins_is_seen_by_the_others(cluster: Backend) -> None:
    first = await cluster.start(1)
    second = await cluster.start(2)
    view = await until(first, lambda view: 2 in view.brokers)
    assert view.brokers[2] == second.me


@contract("shares")
async def test_a_broker_that_leaves_is_no_longer_in_the_others_views(cluster: Backend) -> None:
    first, second, _ = await cluster.start_all()
    await second.stop()
    await until(first, lambda view: 2 not in view.brokers)


@contract("shares")
async def test_a_broker_that_dies_is_no_longer_in_the_others_views(cluster: Backend) -> None:
    first, second, _ = await cluster.start_all()
    await cluster.kill(second)
    await until(first, lambda view: 2 not in view.brokers)


@contract("shares")
async def test_a_second_broker_with_the_same_id_is_refused_and_the_first_stays(cluster: Backend) -> None:
    first, *_ = await cluster.start_all()
    with pytest.raises(BrokerIdTaken, match="1"):
        await cluster.start_as(replace(first.me, kafka_port=9999, rpc_port=9998))
    assert first.view().brokers[1] == first.me


@contract("shares")
async def test_a_broker_that_died_can_start_again(cluster: Backend) -> None:
    first, second, _ = await cluster.start_all()
    await cluster.kill(second)
    await until(first, lambda view: 2 not in view.brokers)
    again = await cluster.start(2)
    await until(first, lambda view: view.brokers.get(2) == again.me)


@contract()
async def test_stopping_twice_is_stopping_once(cluster: Backend) -> None:
    coordinator = await cluster.start(1)
    await coordinator.stop()
    await coordinator.stop()


# --- views -----------------------------------------------------------------------------------------------------------


@contract()
async def test_the_first_of_the_views_is_the_present_one(cluster: Backend) -> None:
    coordinator = await cluster.start(1)
    assert await anext(coordinator.views()) == coordinator.view()


@contract()
async def test_each_later_view_has_a_higher_version(cluster: Backend) -> None:
    coordinator = await cluster.start(1)
    views = coordinator.views()
    before = await anext(views)
    await coordinator.create_topic("orders", 1, 1)
    async with asyncio.timeout(WITHIN_S):
        after = await anext(views)
    assert after.version > before.version


@contract()
async def test_the_views_end_when_the_broker_stops(cluster: Backend) -> None:
    coordinator = await cluster.start(1)

    views = coordinator.views()
    await anext(views)
    await coordinator.stop()
    async with asyncio.timeout(WITHIN_S):
        assert [view async for view in views] in ([], [coordinator.view()])


@contract()
async def test_a_view_cannot_be_changed(cluster: Backend) -> None:
    coordinator = await cluster.start(1)
    view = coordinator.view()
    with pytest.raises(FrozenInstanceError):
        view.version = 7  # type: ignore[misc]
    with pytest.raises(TypeError):
        view.topics["orders"] = None  # type: ignore[index]


@contract("shares")
async def test_brokers_that_know_the_same_have_the_same_fingerprint(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 2, partitions=3)
    await agreed(brokers)
    assert AT.topic in brokers[0].view().topics


# --- topics ----------------------------------------------------------------------------------------------------------


@contract()
async def test_a_topic_is_placed_by_the_rule_of_all_architectures(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    creation = await brokers[0].create_topic("orders", 6, 2, TopicSettings(fetch_records_max=20))
    assert creation.topic.partitions == place("orders", 6, 2, [1, 2, 3])
    assert creation.topic.settings == TopicSettings(fetch_records_max=20)


@contract()
async def test_a_topic_is_in_the_creators_view_when_creating_it_returns(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    creation = await brokers[0].create_topic("orders", 3, 1)
    assert brokers[0].view().topics["orders"] == creation.topic
    assert brokers[0].me.id in creation.known_to


@contract()
async def test_a_topic_can_be_used_at_once_through_every_broker_that_is_said_to_know_it(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    for number in range(5):
        topic = f"topic-{number}"
        creation = await brokers[number % 3].create_topic(topic, 1, 1)
        for broker_id in creation.known_to:
            found = await led_by(by_id(brokers, broker_id), TopicPartition(topic, 0))
            assert found == creation.topic.partitions[0]
            assert broker_id not in found.replicas or topic in by_id(brokers, broker_id).view().topics


@contract()
async def test_a_topic_is_found_at_once_by_every_broker_that_is_said_to_know_it(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    creation = await brokers[0].create_topic("orders", 3, 2)
    for broker_id in creation.known_to:
        knows = by_id(brokers, broker_id)
        await knows.find_topics(["orders", "none", "not a name", "../x"])
        assert knows.view().topics == {"orders": creation.topic}


@contract("shares")
async def test_a_topic_that_one_broker_makes_shows_in_the_views_of_all(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    creation = await brokers[1].create_topic("orders", 3, 2)
    for broker in brokers:
        view = await until(broker, lambda view: "orders" in view.topics)
        assert view.topics["orders"] == creation.topic


@contract()
async def test_a_topic_that_exists_cannot_be_made(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await brokers[0].create_topic("orders", 3, 1)
    with pytest.raises(TopicExists, match="orders"):
        await brokers[0].create_topic("orders", 3, 1)


@contract("shares")
async def test_two_brokers_that_make_the_same_topic_at_once_agree_on_one_placement(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await asyncio.gather(
        brokers[0].create_topic("orders", 3, 2), brokers[1].create_topic("orders", 5, 2), return_exceptions=True
    )
    await agreed(brokers)
    topic = brokers[0].view().topics["orders"]
    assert topic.partitions == place("orders", len(topic.partitions), 2, [1, 2, 3])


@contract()
@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "nul\0", "é", "x" * 250])
async def test_a_topic_whose_name_cannot_be_a_folder_is_refused(cluster: Backend, name: str) -> None:
    coordinator = await cluster.start(1)
    with pytest.raises(InvalidRequest):
        await coordinator.create_topic(name, 1, 1)
    with pytest.raises(UnknownTopic):
        await led_by(coordinator, TopicPartition(name, 0))
    with pytest.raises(UnknownTopic):
        await coordinator.delete_topic(name)


@contract()
async def test_a_topic_without_partitions_or_replicas_or_with_too_many_is_refused(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    for partitions, replication_factor in ((0, 1), (-1, 1), (10_001, 1), (1, 0)):
        with pytest.raises(InvalidRequest):
            await brokers[0].create_topic("orders", partitions, replication_factor)
    with pytest.raises(NotEnoughBrokers, match="4"):
        await brokers[0].create_topic("orders", 1, 4)
    assert "orders" not in brokers[0].view().topics


@contract()
async def test_a_deleted_topic_is_unknown(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await brokers[0].create_topic("orders", 3, 1)
    await brokers[0].delete_topic("orders")
    assert "orders" not in brokers[0].view().topics
    with pytest.raises(UnknownTopic, match="orders"):
        await led_by(brokers[0])
    with pytest.raises(UnknownTopic, match="orders"):
        await brokers[0].delete_topic("orders")


@contract("shares")
async def test_a_topic_that_one_broker_deletes_leaves_the_views_of_all(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 1)
    for broker in brokers:
        await until(broker, lambda view: AT.topic in view.topics)
    await brokers[2].delete_topic(AT.topic)
    for broker in brokers:
        await until(broker, lambda view: AT.topic not in view.topics)


@contract()
async def test_what_does_not_exist_is_led_by_nobody(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 1)
    for at in (TopicPartition("none", 0), TopicPartition("orders", 1), TopicPartition("orders", -1)):
        with pytest.raises(UnknownTopic, match=at.topic):
            await led_by(brokers[0], at)


# --- leadership ------------------------------------------------------------------------------------------------------


@contract()
async def test_every_broker_names_the_same_leader(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 2)
    assert len(await everywhere(brokers)) == 1


@contract("passes_leadership")
async def test_a_dead_leaders_partition_passes_to_the_next_in_placement_order_at_a_higher_epoch(
    cluster: Backend,
) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 3)
    before = await led_by(brokers[0])
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
        await until(broker, lambda view: len(view.topics[AT.topic].partitions[0].in_sync) == 2)
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
        view = await until(broker, lambda view: leads(view, dead.me.id))
        assert view.topics[AT.topic].partitions[0].epoch > before.epoch


@contract("passes_leadership")
async def test_an_orderly_stop_passes_leadership_on(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 2)
    before = await led_by(brokers[0])
    leaving = by_id(brokers, before.leader)
    await leaving.stop()
    for broker in others(brokers, leaving):
        view = await until(broker, lambda view: leads(view, before.replicas[1]))
        assert view.topics[AT.topic].partitions[0].epoch > before.epoch


@contract("passes_leadership")
async def test_a_follower_that_dies_changes_no_leadership(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 2)
    before = await led_by(brokers[0])
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
    alone = await leader.change_in_sync(AT, {before.leader}, before.epoch)
    assert alone == replace(before, in_sync=(before.leader,))
    assert leader.view().topics[AT.topic].partitions[0] == alone
    assert await leader.change_in_sync(AT, set(before.replicas), before.epoch) == before


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
    before = await led_by(brokers[0])
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
    before = await led_by(brokers[0])
    leader = by_id(brokers, before.leader)
    after = await leader.resign(AT, before.epoch)
    with pytest.raises(StaleEpoch):
        await leader.change_in_sync(AT, set(before.replicas), before.epoch)
    for broker in brokers:
        await until(broker, lambda view: view.topics[AT.topic].partitions[0] == after)


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


# --- consumer offsets ------------------------------------------------------------------------------------------------


@contract()
async def test_what_a_group_committed_is_found_again(cluster: Backend) -> None:
    home = await committing(await cluster.start_all())
    places = {AT: Committed(7, 0, "note"), TopicPartition("orders", 2): Committed(0)}
    await home.commit_offsets("readers", places)
    assert await home.committed_offsets("readers") == places


@contract()
async def test_the_latest_commit_counts_and_leaves_other_partitions_alone(cluster: Backend) -> None:
    home = await committing(await cluster.start_all())
    other = TopicPartition("orders", 1)
    await home.commit_offsets("readers", {AT: Committed(7), other: Committed(9)})
    await home.commit_offsets("readers", {AT: Committed(5)})
    assert await home.committed_offsets("readers") == {AT: Committed(5), other: Committed(9)}


@contract()
async def test_commits_at_once_are_all_kept(cluster: Backend) -> None:
    home = await committing(await cluster.start_all())
    ats = [TopicPartition("orders", number) for number in range(3)]
    await asyncio.gather(*(home.commit_offsets("readers", {at: Committed(at.partition + 1)}) for at in ats))
    assert await home.committed_offsets("readers") == {at: Committed(at.partition + 1) for at in ats}


@contract()
async def test_a_group_that_never_committed_has_nothing(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    assert await home_of(brokers, "nobody").committed_offsets("nobody") == {}


@contract()
@pytest.mark.parametrize("group", ["a/b", ".", "..", "line\nfeed", "nul\0", "gruppe-ä", "x" * 255])
async def test_a_group_may_have_any_name(cluster: Backend, group: str) -> None:
    brokers = await cluster.start_all()
    home = await committing(brokers, group)
    await home.commit_offsets(group, {AT: Committed(3)})
    assert await home.committed_offsets(group) == {AT: Committed(3)}


@contract()
async def test_commits_that_make_no_sense_are_refused(cluster: Backend) -> None:
    home = await committing(await cluster.start_all())
    for group, place_ in (
        ("", Committed(1)),
        ("x" * 256, Committed(1)),
        ("readers", Committed(-2)),
        ("readers", Committed(2**63)),
        ("readers", Committed(1, metadata="x" * 4097)),
    ):
        with pytest.raises(InvalidRequest):
            await home.commit_offsets(group, {AT: place_})
    with pytest.raises(UnknownTopic, match="none-0"):
        await home.commit_offsets("readers", {TopicPartition("none", 0): Committed(1)})
    with pytest.raises(UnknownTopic, match="orders-3"):
        await home.commit_offsets("readers", {TopicPartition("orders", 3): Committed(1)})
    assert await home.committed_offsets("readers") == {}


@contract()
async def test_a_group_is_served_by_one_broker_and_refused_by_the_others(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    home = await committing(brokers)
    assert {broker.group_coordinator("readers") for broker in brokers} == {home.me.id}
    for broker in others(brokers, home):
        with pytest.raises(NotCoordinator, match=str(home.me.id)):
            await broker.commit_offsets("readers", {AT: Committed(1)})
        with pytest.raises(NotCoordinator):
            await broker.committed_offsets("readers")


@contract()
async def test_groups_are_spread_over_the_brokers(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    homes = Counter(brokers[0].group_coordinator(f"group-{number}") for number in range(300))
    assert set(homes) == {1, 2, 3}
    assert min(homes.values()) > 50


@contract("shares")
async def test_a_dead_brokers_groups_are_served_by_another_and_the_rest_stay_where_they_are(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    groups = [f"group-{number}" for number in range(50)]
    before = {group: brokers[0].group_coordinator(group) for group in groups}
    await cluster.kill(brokers[2])
    for broker in brokers[:2]:
        await until(broker, lambda view: 3 not in view.brokers)
        after = {group: broker.group_coordinator(group) for group in groups}
        assert all(after[group] == before[group] for group in groups if before[group] != 3)
        assert 3 not in after.values()


@contract()
async def test_commits_survive_an_orderly_restart(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    home = await committing(brokers)
    await home.commit_offsets("readers", {AT: Committed(7)})
    await home.stop()
    again = await cluster.start(home.me.id)
    await until(again, lambda view: len(view.brokers) == 3 and AT.topic in view.topics)
    assert await again.committed_offsets("readers") == {AT: Committed(7)}


@contract()
async def test_a_topic_made_anew_has_no_commits_of_its_namesake(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    home = await committing(brokers)
    await home.commit_offsets("readers", {AT: Committed(7)})
    await home.delete_topic("orders")
    await home.create_topic("orders", 3, 1)
    assert await home.committed_offsets("readers") == {}


# --- counting --------------------------------------------------------------------------------------------------------


@contract()
async def test_every_verb_is_counted_with_the_time_that_its_callers_waited(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    home = await committing(brokers)
    await home.commit_offsets("readers", {AT: Committed(1)})
    await home.commit_offsets("readers", {AT: Committed(2)})
    await home.committed_offsets("readers")
    calls = home.meter.calls()
    assert (calls["commit"], calls["committed"]) == (2, 1)
    assert sum(broker.meter.calls().get("create_topic", 0) for broker in brokers) in {1, 3}
    assert home.meter.snapshot()["commit"][2] > 0


@contract()
async def test_a_refused_verb_is_counted_as_well(cluster: Backend) -> None:
    coordinator = await cluster.start(1)
    with pytest.raises(UnknownTopic):
        await coordinator.delete_topic("none")
    assert coordinator.meter.calls()["delete_topic"] == 1


@contract()
async def test_many_topics_come_and_go(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    names = (f"topic-{number}" for number in count())
    for _ in range(10):
        name = next(names)
        await brokers[0].create_topic(name, 2, 2)
        await brokers[0].delete_topic(name)
    assert brokers[0].view().topics == {}
