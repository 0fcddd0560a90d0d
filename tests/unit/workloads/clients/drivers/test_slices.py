"""Slices of time: every batch is in one row, and the first and the last moment of each row are those of its batches."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from workloads.clients.drivers.api import RequestRow
from workloads.clients.drivers.slices import SLICE_NS, Slices
from workloads.results import bucket_of

MS = 1_000_000


def rows_of(*batches: tuple[int, int, int], latencies: bool = True) -> list[RequestRow]:
    found = Slices(32, 7, latencies=latencies)
    for batch in batches:
        found.note(*batch)
    found.close()
    return found.rows


def test_a_row_covers_what_came_to_its_end_within_a_slice() -> None:
    first, second = rows_of((10, 2 * MS, 5 * MS), (10, 1 * MS, 9 * MS), (5, 3 * MS, 5 * MS + SLICE_NS))
    assert (first.messages, first.requests, first.bytes) == (20, 2, 640)
    assert (first.sent_ns, first.done_ns) == (1 * MS, 9 * MS), "the first send and the last end in it"
    assert first.latency == {bucket_of(3 * MS): 1, bucket_of(8 * MS): 1}
    assert (second.messages, second.requests, second.bytes) == (5, 1, 160)
    assert (second.sent_ns, second.done_ns) == (3 * MS, 5 * MS + SLICE_NS)
    assert {(row.partition, row.status, row.window_number) for row in (first, second)} == {(-1, "ok", 7)}


def test_where_there_is_no_latency_none_is_noted() -> None:
    (row,) = rows_of((10, 0, MS), latencies=False)
    assert (row.messages, row.latency) == (10, None)


def test_a_slice_in_which_nothing_came_leaves_no_row() -> None:
    assert rows_of() == []
    assert len(rows_of((1, 0, MS), (1, 0, MS + 9 * SLICE_NS))) == 2


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9 * MS), st.integers(0, 3 * SLICE_NS)), max_size=30))
def test_no_batch_is_lost_or_counted_twice(steps: list[tuple[int, int, int]]) -> None:
    batches, now_ns = [], 100 * MS
    for messages, took_ns, later_ns in steps:
        now_ns += later_ns
        batches.append((messages, now_ns - took_ns, now_ns))
    rows = rows_of(*batches)
    counted = Counter[int]()
    for row in rows:
        counted.update(row.latency or {})
        among = [batch for batch in batches if row.sent_ns <= batch[1] and batch[2] <= row.done_ns]
        assert sum(messages for messages, _, _ in among) >= row.messages
        assert row.done_ns in {done_ns for _, _, done_ns in batches}
        assert row.sent_ns in {sent_ns for _, sent_ns, _ in batches}
    assert sum(row.messages for row in rows) == sum(messages for messages, _, _ in batches)
    assert sum(row.requests for row in rows) == counted.total() == len(batches)
    ends = [row.done_ns for row in rows]
    assert ends == sorted(ends)


@given(st.lists(st.integers(0, 2 * SLICE_NS), min_size=1, max_size=30))
def test_messages_up_to_a_rows_end_are_exact(gaps: list[int]) -> None:
    """The analysis cuts windows at ends of rows."""
    ends_ns = [sum(gaps[: at + 1]) for at in range(len(gaps))]
    counted = 0
    for row in rows_of(*((1, 0, end_ns) for end_ns in ends_ns)):
        counted += row.messages
        assert counted <= sum(end_ns <= row.done_ns for end_ns in ends_ns)
        assert counted >= sum(end_ns < row.done_ns for end_ns in ends_ns)
