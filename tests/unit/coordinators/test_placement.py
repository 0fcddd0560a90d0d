from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinators.errors import NotEnoughBrokers
from coordinators.placement import group_home, group_succession, place

IDS = st.sets(st.integers(0, 1_000), min_size=1, max_size=12)


@given(st.text(min_size=1), st.integers(1, 60), IDS, st.data())
def test_replicas_are_different_brokers_and_leaders_are_spread_evenly(
    topic: str, partitions: int, ids: set[int], data: st.DataObject
) -> None:
    replication_factor = data.draw(st.integers(1, len(ids)))
    placed = place(topic, partitions, replication_factor, ids)
    assert len(placed) == partitions
    for partition in placed:
        assert len(set(partition.replicas)) == replication_factor
        assert set(partition.replicas) <= ids
        first = partition.replicas[0]
        assert (partition.leader, partition.epoch, partition.in_sync) == (first, 0, (first,)), "nobody has copied yet"
    led = Counter(partition.leader for partition in placed)
    assert max(led.values()) - min((led[broker_id] for broker_id in ids), default=0) <= 1


def test_placement_needs_the_name_and_the_brokers_alone() -> None:
    assert place("orders", 6, 2, [3, 1, 2]) == place("orders", 6, 2, {1, 2, 3})


# CRC-32 of "clicks", "events" and "orders" is 551,164,161, 1,401,378,634 and 3,845,127,662: 0, 1 and 2 modulo 3.
@pytest.mark.parametrize(
    ("topic", "replicas"),
    [
        ("clicks", [(1, 2), (2, 3), (3, 1), (1, 2)]),
        ("orders", [(3, 1), (1, 2), (2, 3), (3, 1)]),
        ("events", [(2, 3), (3, 1), (1, 2), (2, 3)]),
    ],
)
def test_a_topics_name_decides_at_which_broker_its_partitions_begin(
    topic: str, replicas: list[tuple[int, int]]
) -> None:
    """Written out: who makes a topic on each broker of `static` relies on the rule, and so does every older journal."""
    assert [(found.replicas, found.leader) for found in place(topic, 4, 2, {3, 1, 2})] == [
        (expected, expected[0]) for expected in replicas
    ]


def test_more_replicas_than_brokers_are_refused() -> None:
    with pytest.raises(NotEnoughBrokers, match=r"orders.*4.*3"):
        place("orders", 1, 4, [1, 2, 3])


@given(st.text(min_size=1), IDS)
def test_a_group_is_served_by_the_first_in_its_succession(group: str, ids: set[int]) -> None:
    order = group_succession(group, ids)
    assert sorted(order) == sorted(ids)
    assert group_home(group, ids) == order[0]


@given(st.text(min_size=1), IDS, st.data())
def test_a_broker_that_goes_moves_only_its_own_groups_and_to_the_next_in_succession(
    group: str, ids: set[int], data: st.DataObject
) -> None:
    gone = data.draw(st.sampled_from(sorted(ids)))
    order = group_succession(group, ids)
    assert group_succession(group, ids - {gone}) == tuple(broker_id for broker_id in order if broker_id != gone)
