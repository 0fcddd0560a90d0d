"""What every back end must do (coordinators/api.py): consumer offsets, and who serves a group."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from coordinators.errors import (
    InvalidRequest,
    NotCoordinator,
    UnknownTopic,
)
from coordinators.model import Committed, TopicPartition
from tests.contract.asking import (
    AT,
    committing,
    home_of,
    others,
)
from tests.contract.backend import agreed, until
from tests.contract.suite import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.contract.backend import Backend


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
async def test_commits_of_a_partition_count_in_the_order_in_which_they_were_begun(cluster: Backend) -> None:
    """The first of a group, too, which may take several steps: the last begins at every moment of them."""
    brokers = await cluster.start_all()
    await committing(brokers)
    await agreed(brokers)
    wrong = []
    for step in range(60):
        group = f"readers-{step}"
        home = home_of(brokers, group)
        begun = [asyncio.create_task(home.commit_offsets(group, {AT: Committed(offset)})) for offset in range(3)]
        await asyncio.sleep(step * 0.0001)
        await home.commit_offsets(group, {AT: Committed(3)})
        await asyncio.gather(*begun)
        if await home.committed_offsets(group) != {AT: Committed(3)}:
            wrong.append(step)
    assert not wrong


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


@contract("keeps_commits")
async def test_commits_survive_an_orderly_restart(cluster: Backend) -> None:
    assert await found_after_a_restart(cluster) == {AT: Committed(7)}


@contract(without="keeps_commits")
async def test_commits_that_are_in_memory_are_lost_with_their_broker(cluster: Backend) -> None:
    assert await found_after_a_restart(cluster) == {}


async def found_after_a_restart(cluster: Backend) -> Mapping[TopicPartition, Committed]:
    brokers = await cluster.start_all()
    home = await committing(brokers)
    await home.commit_offsets("readers", {AT: Committed(7)})
    await home.stop()
    again = await cluster.start(home.me.id)
    await until(again, lambda view: len(view.brokers) == 3 and AT.topic in view.topics)
    return await again.committed_offsets("readers")


@contract("passes_leadership", without="passes_commits")
async def test_commits_that_one_broker_has_are_not_found_at_the_next(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    home = await committing(brokers)
    await agreed(brokers)
    await home.commit_offsets("readers", {AT: Committed(7)})
    await cluster.kill(home)
    rest = others(brokers, home)
    for broker in rest:
        await until(broker, lambda view: home.me.id not in view.brokers)
    assert await home_of(rest, "readers").committed_offsets("readers") == {}


@contract()
async def test_a_topic_made_anew_has_no_commits_of_its_namesake(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    home = await committing(brokers)
    await home.commit_offsets("readers", {AT: Committed(7)})
    await home.delete_topic("orders")
    await home.create_topic("orders", 3, 1)
    assert await home.committed_offsets("readers") == {}
