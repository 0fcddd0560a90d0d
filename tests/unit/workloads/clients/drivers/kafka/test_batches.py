"""Feeding partitions and cutting batches: pure, so that every sequence of events can be tried."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from workloads.clients.drivers.kafka import batches
from workloads.clients.drivers.kafka.batches import Cut, Feed, cut

SMALL = {"batch_size": 1, "message_size": 32}


@given(st.integers(1, 5), st.integers(1, 20), st.lists(st.integers(0, 4), max_size=60))
def test_no_partition_has_fewer_than_twice_or_more_than_three_times_in_flight(
    partitions: int, in_flight: int, acknowledged: list[int]
) -> None:
    feed = Feed(partitions, in_flight, **SMALL)
    for partition in acknowledged:
        while feed.next(None):
            pass
        assert all(2 * in_flight < under_way <= 3 * in_flight for under_way in feed.under_way)
        feed.under_way[partition % partitions] -= 1


@given(st.integers(1, 5), st.integers(1, 20), st.integers(0, 200))
def test_an_exact_number_of_batches_is_handed_over_and_no_more(partitions: int, in_flight: int, total: int) -> None:
    feed, left = Feed(partitions, in_flight, **SMALL), total
    handed_over = [0] * partitions
    while left:
        given_now = feed.next(left)
        assert given_now, "a partition without anything under way has room"
        for partition, count in given_now:
            handed_over[partition] += count
            left -= count
        feed.under_way = [0] * partitions
    assert sum(handed_over) == total
    assert max(handed_over) - min(handed_over) <= in_flight, "partitions take turns"
    assert feed.next(0) == []


def test_few_batches_are_shared_and_not_given_to_the_first() -> None:
    assert sorted(Feed(3, 50, **SMALL).next(6)) == [(0, 2), (1, 2), (2, 2)]


def test_a_partition_that_is_slow_holds_up_nobody() -> None:
    feed = Feed(3, 2, **SMALL)
    while feed.next(None):
        pass
    feed.under_way[1:] = [0, 0]
    assert {partition for partition, _ in feed.next(None)} == {1, 2}


@given(st.integers(1, 3), st.integers(1, 5), st.lists(st.integers(0, 2), max_size=60))
def test_where_a_partition_has_room_the_feed_says_so(partitions: int, in_flight: int, ended: list[int]) -> None:
    feed = Feed(partitions, in_flight, **SMALL)
    assert feed.hungry
    for partition in ended:
        while feed.hungry:
            feed.next(None)
        assert feed.next(None) == []
        feed.ended(partition % partitions)
    while feed.hungry:
        feed.next(None)
    assert min(feed.under_way) > 2 * in_flight


def test_several_batches_go_in_one_call_where_in_flight_allows_and_calls_stay_short() -> None:
    assert {count for _, count in Feed(3, 5, **SMALL).next(None)} == {5}
    assert {count for _, count in Feed(3, 1, **SMALL).next(None)} == {1}
    most = batches.CALL_MESSAGES_MAX
    assert {count for _, count in Feed(3, 1000, batch_size=most // 4, message_size=8).next(None)} == {4}
    assert {count for _, count in Feed(3, 1000, batch_size=2 * most, message_size=8).next(None)} == {1}


@given(st.integers(1, 8), st.integers(1, 30), st.integers(1, 2**27))
def test_large_batches_have_little_in_reserve_and_a_connection_is_full_all_the_same(
    partitions: int, in_flight: int, batch_bytes: int
) -> None:
    feed = Feed(partitions, in_flight, 1, batch_bytes)
    while feed.next(None):
        pass
    assert min(feed.under_way) > in_flight
    reserve = sum(under_way - in_flight - 1 for under_way in feed.under_way)
    assert reserve * batch_bytes <= batches.HANDED_OVER_BYTES_MAX
    feed.under_way[0] -= 1
    feed.next(None)
    assert min(feed.under_way) >= in_flight


# --- cutting --------------------------------------------------------------------------------------------------


def test_a_batch_ends_where_the_partition_changes_or_it_is_full() -> None:
    assert cut([1, 1, 1, 0, 0, 1, 1, 1, 1], 2) == [
        Cut(1, 0, 2), Cut(1, 2, 3), Cut(0, 3, 5), Cut(1, 5, 7), Cut(1, 7, 9),
    ]  # fmt: skip
    assert cut([], 2) == []


@given(st.lists(st.integers(0, 2), max_size=60), st.integers(1, 9))
def test_every_message_is_in_one_batch_of_its_partition(partitions: list[int], batch_size: int) -> None:
    cuts = cut(partitions, batch_size)
    assert [at for _, start, stop in cuts for at in range(start, stop)] == list(range(len(partitions)))
    for partition, start, stop in cuts:
        assert set(partitions[start:stop]) == {partition}
        assert 0 < stop - start <= batch_size
    for before, after in itertools.pairwise(cuts):
        full = before.stop - before.start == batch_size
        assert full or before.partition != after.partition, "a batch is not cut without a reason"
