"""What every back end must do (coordinators/api.py): groups that nobody uses go, and so does what a topic had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinators.model import Committed, TopicPartition
from tests.contract.asking import AT, committing, home_of, made_everywhere
from tests.contract.backend import WITHIN_S, agreed, until
from tests.contract.suite import contract

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinators.api import Coordinator
    from tests.contract.backend import Backend

RETENTION_MS = 200
OTHER = TopicPartition("orders", 1)


async def swept(brokers: Sequence[Coordinator], members: Sequence[str] = ()) -> None:
    """As brokers do now and then: each says which groups have members at it."""
    for broker in brokers:
        ours = [group for group in members if broker.group_coordinator(group) == broker.me.id]
        await broker.expire_groups(RETENTION_MS, ours)


async def expired(brokers: Sequence[Coordinator], group: str, members: Sequence[str] = ()) -> None:
    """Return when a group is forgotten by all; fails when it is not in time."""
    home = home_of(brokers, group)
    end = home._clock() + WITHIN_S
    while await home.committed_offsets(group):
        assert home._clock() < end, f"group {group!r} is still there"
        await swept(brokers, members)
    begun = home._clock()  # the others see it later by no more than what they watch of each group
    while home._clock() < begun + RETENTION_MS / 1000:
        await swept(brokers, members)


@contract()
async def test_a_group_that_nobody_uses_is_forgotten_and_may_begin_again(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    home = await committing(brokers)
    await home.commit_offsets("readers", {AT: Committed(7), OTHER: Committed(8)})
    await expired(brokers, "readers")
    await home.commit_offsets("readers", {AT: Committed(3)})
    assert await home.committed_offsets("readers") == {AT: Committed(3)}


@contract()
async def test_a_group_with_members_is_kept_though_it_commits_nothing(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await committing(brokers)
    await agreed(brokers)
    groups = [f"group-{number}" for number in range(6)]
    for group in groups:
        await home_of(brokers, group).commit_offsets(group, {AT: Committed(7)})
    for group in groups[3:]:
        await expired(brokers, group, members=groups[:3])
    for group in groups[:3]:
        assert await home_of(brokers, group).committed_offsets(group) == {AT: Committed(7)}


@contract()
async def test_a_group_that_commits_is_kept_though_it_has_no_members(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    home = await committing(brokers)
    await home.commit_offsets("readers", {AT: Committed(0)})
    end = home._clock() + 5 * RETENTION_MS / 1000
    offset = 0
    while home._clock() < end:
        offset += 1
        await home.commit_offsets("readers", {OTHER: Committed(offset)})
        await swept(brokers)
        assert await home.committed_offsets("readers") == {AT: Committed(0), OTHER: Committed(offset)}


@contract()
async def test_a_group_whose_members_left_is_kept_for_as_long_as_one_that_committed(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    home = await committing(brokers)
    await home.commit_offsets("readers", {AT: Committed(7)})
    end = home._clock() + 3 * RETENTION_MS / 1000
    while home._clock() < end:
        await swept(brokers, ["readers"])
    left = home._clock()
    await swept(brokers)
    kept = await home.committed_offsets("readers")
    assert kept or home._clock() - left >= RETENTION_MS / 1000
    await expired(brokers, "readers")


@contract()
async def test_what_was_forgotten_does_not_come_back_with_a_restart(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    home = await committing(brokers)
    await home.commit_offsets("readers", {AT: Committed(7), OTHER: Committed(8)})
    await expired(brokers, "readers")
    await home.stop()
    again = await cluster.start(home.me.id)
    await until(again, lambda view: len(view.brokers) == 3 and AT.topic in view.topics)
    assert await again.committed_offsets("readers") == {}
    await again.commit_offsets("readers", {AT: Committed(1)})
    assert await again.committed_offsets("readers") == {AT: Committed(1)}


@contract("passes_leadership", "passes_commits")
async def test_a_group_that_came_back_passes_on_with_what_it_committed_since(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    home = await committing(brokers)
    await agreed(brokers)
    await home.commit_offsets("readers", {AT: Committed(7)})
    for offset in range(8, 20):
        await home.commit_offsets("readers", {AT: Committed(offset)})
    await expired([home], "readers")  # the others, which may hold copies, have not looked yet
    await home.commit_offsets("readers", {AT: Committed(3)})
    await cluster.kill(home)
    others = [broker for broker in brokers if broker is not home]
    for broker in others:
        await until(broker, lambda view: home.me.id not in view.brokers)
    assert await home_of(others, "readers").committed_offsets("readers") == {AT: Committed(3)}


@contract("passes_leadership", "passes_commits")
async def test_a_groups_first_commit_in_a_partition_outlives_its_broker(cluster: Backend) -> None:
    """Where it vanished, a consumer that begins at the latest message would skip what was there to read."""
    brokers = await cluster.start_all()
    home = await committing(brokers)
    await agreed(brokers)
    await home.commit_offsets("readers", {AT: Committed(0)})
    await home.commit_offsets("readers", {AT: Committed(0), OTHER: Committed(5)})
    await cluster.kill(home)
    others = [broker for broker in brokers if broker is not home]
    for broker in others:
        await until(broker, lambda view: home.me.id not in view.brokers)
    assert await home_of(others, "readers").committed_offsets("readers") == {AT: Committed(0), OTHER: Committed(5)}


@contract()
async def test_deleting_a_topic_asks_nothing_of_groups_that_have_nothing_in_it(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    await made_everywhere(brokers, 1, partitions=3)
    for name in ("first", "second"):
        await brokers[0].create_topic(name, 1, 1)
    await agreed(brokers) if cluster.shares else None
    for name, groups in (("first", 0), ("second", 30)):
        for number in range(groups):
            home = home_of(brokers, f"group-{number}")
            await home.commit_offsets(f"group-{number}", {AT: Committed(1)})
        before = brokers[0].meter.of("delete_topic").requests
        await brokers[0].delete_topic(name)
        if name == "first":
            alone = brokers[0].meter.of("delete_topic").requests - before
    assert brokers[0].meter.of("delete_topic").requests - before == alone
    assert await home_of(brokers, "group-7").committed_offsets("group-7") == {AT: Committed(1)}


@contract()
async def test_a_topic_that_many_groups_committed_in_goes_with_all_of_it_and_leaves_the_rest(cluster: Backend) -> None:
    brokers = await cluster.start_all()
    home = await committing(brokers)
    await home.create_topic("kept", 1, 1)
    kept = TopicPartition("kept", 0)
    groups = [f"group-{number}" for number in range(60)]
    ours = [group for group in groups if home.group_coordinator(group) == home.me.id]
    for number, group in enumerate(ours):
        await home.commit_offsets(group, {AT: Committed(1), OTHER: Committed(2)})
        if number % 2:
            await home.commit_offsets(group, {kept: Committed(3)})
    await home.delete_topic("orders")
    await home.create_topic("orders", 3, 1)
    for number, group in enumerate(ours):
        assert await home.committed_offsets(group) == ({kept: Committed(3)} if number % 2 else {})
        await home.commit_offsets(group, {OTHER: Committed(9)})
        assert (await home.committed_offsets(group))[OTHER] == Committed(9)
