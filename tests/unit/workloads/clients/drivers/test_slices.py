"""Slices of 10 ms: every acknowledged message is in one row, every handed-over request in one bucket, and the first and
the last moment of each row are those of its messages."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.clients.jobs import produce_job
from workloads.clients.drivers import slices
from workloads.clients.drivers.slices import SLICE_NS, Slices
from workloads.results import bucket_of

MS = 1_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The one entry is the time."""
    now = [0]
    monkeypatch.setattr(slices, "monotonic_ns", lambda: now[0])
    return now


def made(batch_size: int = 10, message_size: int = 32) -> Slices:
    return Slices(produce_job(Path(), batch_size=batch_size, message_size=message_size))


def test_a_row_covers_what_was_acknowledged_within_ten_milliseconds(clock: list[int]) -> None:
    found = made()
    found.sent(10, 1 * MS)
    found.sent(20, 2 * MS)
    found.sent(30, 3 * MS)
    for count, now in ((10, 5 * MS), (20, 14 * MS), (30, 15 * MS)):
        clock[0] = now
        found.acknowledged(count)
    found.close()
    assert [(row.messages, row.requests, row.bytes) for row in found.rows] == [(20, 2, 640), (10, 1, 320)]
    assert [(row.sent_ns, row.done_ns) for row in found.rows] == [(1 * MS, 14 * MS), (3 * MS, 15 * MS)]
    assert [row.latency for row in found.rows] == [
        {bucket_of(4 * MS): 1, bucket_of(12 * MS): 1},
        {bucket_of(12 * MS): 1},
    ]
    assert {(row.partition, row.status) for row in found.rows} == {(-1, "ok")}


def test_a_request_has_its_latency_when_the_last_of_its_messages_is_acknowledged(clock: list[int]) -> None:
    found = made()
    found.sent(10, 0)
    clock[0] = 2 * MS
    found.acknowledged(4)
    clock[0] = 3 * MS
    found.acknowledged(10)
    found.close()
    (row,) = found.rows
    assert (row.messages, row.latency) == (10, {bucket_of(3 * MS): 1})


def test_what_is_handed_over_at_once_counts_as_its_requests(clock: list[int]) -> None:
    found = made(batch_size=10)
    found.sent(25, 0)
    clock[0] = MS
    found.acknowledged(25)
    found.close()
    (row,) = found.rows
    assert (row.requests, row.latency) == (3, {bucket_of(MS): 3})


def test_a_count_that_does_not_grow_or_shrinks_for_a_moment_changes_nothing(clock: list[int]) -> None:
    found = made()
    found.sent(20, 0)
    clock[0] = MS
    found.acknowledged(10)
    clock[0] = 2 * MS
    found.acknowledged(10)
    found.acknowledged(7)
    found.close()
    (row,) = found.rows
    assert (row.messages, row.done_ns) == (10, MS)


def test_a_slice_in_which_nothing_came_leaves_no_row(clock: list[int]) -> None:
    found = made()
    found.close()
    found.acknowledged(0)
    found.close()
    assert found.rows == []


def test_a_window_goes_from_the_first_send_to_the_last_acknowledgement(clock: list[int]) -> None:
    found = made()
    found.sent(10, 7 * MS)
    found.sent(20, 8 * MS)
    for count, now in ((10, 100 * MS), (20, 1000 * MS)):
        clock[0] = now
        found.acknowledged(count)
    found.close()
    assert min(row.sent_ns for row in found.rows) == 7 * MS
    assert max(row.done_ns for row in found.rows) == 1000 * MS


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3 * SLICE_NS), st.integers(0, 40)), max_size=30))
def test_no_message_and_no_request_is_lost_or_counted_twice(steps: list[tuple[int, int, int]]) -> None:
    found, now, handed_over, sends = made(batch_size=4), 0, 0, list[int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "monotonic_ns", lambda: now)
        for more, later, behind in steps:
            handed_over += more
            sends.append(more)
            found.sent(handed_over, now)
            now += later
            found.acknowledged(handed_over - behind)
        found.acknowledged(handed_over)
        found.close()
    assert sum(row.messages for row in found.rows) == handed_over
    counted = Counter[int]()
    for row in found.rows:
        counted.update(row.latency or {})
        assert row.sent_ns <= row.done_ns <= now
    assert counted.total() == sum(-(-more // 4) for more in sends)
    ends = [row.done_ns for row in found.rows]
    assert ends == sorted(ends)
