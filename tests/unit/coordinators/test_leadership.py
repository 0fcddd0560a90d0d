from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinators.errors import InvalidRequest, StaleEpoch
from coordinators.leadership import enough_in_sync, resigned, succession, with_in_sync, without
from coordinators.model import NO_LEADER, Partition, TopicPartition, TopicSettings

AT = TopicPartition("orders", 0)
ALL = Partition((3, 1, 2), 3, 4, (3, 1, 2))


def test_nothing_changes_while_the_leader_lives() -> None:
    assert succession(ALL, {3}) is ALL


def test_the_first_live_replica_in_placement_order_succeeds_at_the_next_epoch() -> None:
    assert succession(ALL, {1, 2}) == Partition((3, 1, 2), 1, 5, (1, 2))
    assert succession(ALL, {2}) == Partition((3, 1, 2), 2, 5, (2,))


def test_a_live_replica_that_is_not_in_sync_does_not_succeed() -> None:
    behind = Partition((3, 1, 2), 3, 4, (3, 2))
    assert succession(behind, {1, 2}) == Partition((3, 1, 2), 2, 5, (2,))
    assert succession(behind, {1}) == Partition((3, 1, 2), NO_LEADER, 5, (3, 2))


def test_with_nobody_live_all_stay_in_sync_and_the_first_to_return_leads() -> None:
    nobody = succession(ALL, set())
    assert nobody == Partition((3, 1, 2), NO_LEADER, 5, (3, 1, 2))
    assert succession(nobody, set()) is nobody
    assert succession(nobody, {2}) == Partition((3, 1, 2), 2, 6, (2,))


def test_who_resigns_is_succeeded_as_if_dead() -> None:
    assert resigned(AT, ALL, 3, 4, {1, 2, 3}) == succession(ALL, {1, 2})
    assert resigned(AT, ALL, 3, 4, {3}).leader == NO_LEADER


def test_in_sync_replicas_are_kept_in_placement_order() -> None:
    assert with_in_sync(AT, ALL, 3, 4, {2, 3}) == Partition((3, 1, 2), 3, 4, (3, 2))


def test_a_leader_that_lost_its_disk_leads_no_more_and_is_succeeded_by_who_has_the_data() -> None:
    lost = without(ALL, 3)
    assert lost == Partition((3, 1, 2), NO_LEADER, 5, (1, 2))
    assert succession(lost, {1, 2, 3}) == Partition((3, 1, 2), 1, 6, (1, 2))


def test_nobody_ever_leads_what_nobody_holds() -> None:
    gone = without(Partition((3, 1, 2), 3, 4, (3,)), 3)
    assert gone == Partition((3, 1, 2), NO_LEADER, 5, ())
    assert succession(gone, {1, 2, 3}) is gone


def test_a_follower_that_lost_its_disk_changes_no_leadership() -> None:
    assert without(ALL, 1) == Partition((3, 1, 2), 3, 4, (3, 2))


@pytest.mark.parametrize(("least", "default", "enough"), [(0, 1, True), (0, 4, False), (3, 4, True), (4, 1, False)])
def test_a_topic_says_how_many_must_be_in_sync_or_else_the_broker_does(least: int, default: int, enough: bool) -> None:
    assert enough_in_sync(ALL, TopicSettings(min_insync_replicas=least), default) is enough


@pytest.mark.parametrize(("me", "epoch"), [(1, 4), (3, 3), (3, 5), (NO_LEADER, 4)])
def test_who_does_not_lead_at_the_epoch_changes_nothing(me: int, epoch: int) -> None:
    with pytest.raises(StaleEpoch, match="orders-0"):
        resigned(AT, ALL, me, epoch, {1, 2, 3})
    with pytest.raises(StaleEpoch, match="orders-0"):
        with_in_sync(AT, ALL, me, epoch, {1, 2, 3})


@pytest.mark.parametrize("in_sync", [set(), {1, 2}, {3, 7}])
def test_in_sync_are_the_leader_and_replicas(in_sync: set[int]) -> None:
    with pytest.raises(InvalidRequest, match="orders-0"):
        with_in_sync(AT, ALL, 3, 4, in_sync)


@given(st.lists(st.sets(st.integers(1, 4)), max_size=30))
def test_whatever_happens_epochs_never_fall_and_a_leader_is_in_sync_and_was_live(history: list[set[int]]) -> None:
    partition = Partition((4, 2, 1, 3), 4, 0, (4, 2, 1, 3))
    for live in history:
        after = succession(partition, live)
        assert after.epoch == partition.epoch + (after.leader != partition.leader)
        assert after.leader == NO_LEADER or (after.leader in live and after.leader in after.in_sync)
        assert set(after.in_sync) <= set(partition.in_sync)
        assert after.in_sync
        partition = after
