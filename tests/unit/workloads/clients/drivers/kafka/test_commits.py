"""When a consumer commits: after each batch, at an interval or at the end, with a bound on what is under way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.clients.jobs import consume_job
from workloads.clients.drivers.kafka.commits import Commit, Commits

MS = 1_000_000


def commits(**changes: Any) -> Commits:
    found = Commits(consume_job(Path(), **changes))
    found.begin(0)
    return found


@given(st.integers(1, 9), st.lists(st.integers(0, 2), max_size=40))
def test_a_batch_is_committed_alone_and_each_so_many_th_commit_waits(in_flight: int, batches: list[int]) -> None:
    found, under_way = commits(in_flight=in_flight), 0
    for at, partition in enumerate(batches):
        due = found.after_batch(partition, 10 * at, at)
        assert due is not None
        assert due.places == {partition: 10 * at}
        under_way += 1
        assert under_way <= in_flight
        assert due.wait == (under_way == in_flight)
        under_way *= not due.wait
    assert found.rest() is None


def test_commits_at_an_interval_hold_what_was_read_since_the_last() -> None:
    found = commits(commit="interval", commit_interval_ms=10, in_flight=2)
    assert found.after_batch(0, 5, 4 * MS) is None
    assert found.after_batch(1, 7, 10 * MS) == Commit({0: 5, 1: 7}, wait=False)
    assert found.after_batch(0, 6, 19 * MS) is None
    assert found.after_batch(0, 8, 20 * MS) == Commit({0: 8}, wait=True)
    found.begin(25 * MS)
    assert found.after_batch(0, 9, 34 * MS) is None, "the interval counts from the window's begin"
    assert found.rest() == Commit({0: 9}, wait=True)


@pytest.mark.parametrize("read", [0, 3])
def test_at_the_end_what_was_read_is_committed_once(read: int) -> None:
    found = commits(commit="end")
    for offset in range(1, read + 1):
        assert found.after_batch(0, offset, offset * MS) is None
    assert found.rest() == (Commit({0: read}, wait=True) if read else None)
    assert found.rest() is None
