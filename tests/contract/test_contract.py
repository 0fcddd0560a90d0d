"""What every back end must do (coordinators/api.py): membership, views, topics, counting. Each supplies a cluster."""

from __future__ import annotations

import asyncio
import re
from dataclasses import FrozenInstanceError, replace
from itertools import count
from typing import TYPE_CHECKING

import pytest

from coordinators.errors import (
    BrokerIdTaken,
    InvalidRequest,
    NotEnoughBrokers,
    TopicExists,
    UnknownTopic,
)
from coordinators.model import Committed, TopicPartition, TopicSettings
from coordinators.placement import place
from tests.contract.asking import (
    AT,
    by_id,
    committing,
    led_by,
    made_everywhere,
)
from tests.contract.backend import WITHIN_S, agreed, until
from tests.contract.suite import contract

if TYPE_CHECKING:
    from tests.contract.backend import Backend


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


@contract("shares_topics")
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


@contract("shares_topics")
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


@contract("shares_topics")
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


@contract()
async def test_topics_that_have_one_name_after_another_have_different_lives(cluster: Backend) -> None:
    broker = await cluster.start(1)
    lives = []
    for _ in range(3):
        made = await broker.create_topic("orders", 1, 1)
        lives.append(made.topic.life)
        assert broker.view().topic("orders").life == made.topic.life
        await broker.delete_topic("orders")
    assert len(set(lives)) == 3
    assert all(re.fullmatch("[0-9a-z.]+", life) for life in lives)


@contract()
async def test_a_topic_has_the_same_life_on_every_broker_and_after_a_restart(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    for _ in range(2):
        await made_everywhere(brokers, 1)
        await agreed(brokers)
        (life,) = {broker.view().topic("orders").life for broker in brokers}
        await brokers[2].stop()
        brokers[2] = await cluster.start(3)
        assert (await until(brokers[2], lambda view: "orders" in view.topics)).topic("orders").life == life
        await agreed(brokers)
        await brokers[0].delete_topic("orders")
        await agreed(brokers)


@contract("shares_topics")
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
