"""The sums that Spark makes of request rows: which slice, and what counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analysis.measures import windows
from analysis.measures.rates import AFTER, BEFORE
from analysis.measures.windows import SLICE_NS, SLICES_MAX

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.java

OPENED, CLOSED = 1_000_000_000, 1_200_000_000
REQUESTS = (
    "trial_id string, role string, window_number int, requests int, messages bigint, sent_ns bigint, done_ns bigint, "
    "status string"
)
TRIALS = "trial_id string, windows array<struct<number int, window string, opened_ns bigint, closed_ns bigint>>"


def sums(
    spark: SparkSession, requests: list[tuple[object, ...]], closed_ns: int = CLOSED
) -> dict[tuple[str, int], Row]:
    """Of one trial with a timed window 1 and a whole window 2: the rows by role and slice."""
    known = [("t", [(1, "production", OPENED, closed_ns), (2, "consumption", None, None)])]
    found = windows.sums(spark.createDataFrame(known, TRIALS), spark.createDataFrame(requests, REQUESTS)).collect()
    return {(row.role, row.slice): row for row in found}


def sent(done_ns: int, number: int = 1, role: str = "producer", **more: object) -> tuple[object, ...]:
    columns = {"requests": 1, "messages": 20, "sent_ns": done_ns - 100, "status": "ok"} | more
    return (
        "t", role, number, columns["requests"], columns["messages"], columns["sent_ns"], done_ns, columns["status"],
    )  # fmt: skip


def test_an_end_belongs_to_its_slice_and_a_beginning_to_the_one_before(spark: SparkSession) -> None:
    ends = [OPENED, OPENED + 1, OPENED + SLICE_NS, OPENED + SLICE_NS + 1, CLOSED, CLOSED + 1]
    found = sums(spark, [sent(end) for end in ends])
    assert {place: row.messages for (_, place), row in found.items()} == {BEFORE: 20, 0: 40, 1: 20, 9: 20, AFTER: 20}
    assert (found["production", 0].first_ns, found["production", 0].last_ns) == (OPENED - 99, OPENED + SLICE_NS)


def test_whole_window_and_what_is_outside_of_windows_are_one_slice_each(spark: SparkSession) -> None:
    found = sums(spark, [sent(5_000, 2, "consumer"), sent(9_000, 2, "consumer"), sent(700, 0)])
    assert {key: (row.number, row.messages, row.first_ns, row.last_ns) for key, row in found.items()} == {
        ("consumption", 0): (2, 40, 4_900, 9_000),
        ("production", 0): (0, 20, 600, 700),
    }


def test_failed_request_opens_a_window_but_neither_closes_it_nor_counts(spark: SparkSession) -> None:
    found = sums(
        spark,
        [
            sent(900, 2, sent_ns=1, status="timed_out", requests=3),
            sent(600, 2, messages=5),
            sent(850, 2, messages=0),
            sent(700, 2, sent_ns=800),
        ],
    )["production", 0]
    assert (found.first_ns, found.last_ns, found.messages, found.requests) == (1, 700, 25, 2)
    assert (found.failed, found.backwards) == (3, 1)


def test_failed_request_in_a_timed_window_is_in_no_slice_of_it(spark: SparkSession) -> None:
    found = sums(spark, [sent(OPENED + 5, status="timed_out"), sent(OPENED + 7)])
    assert {place: (row.messages, row.failed) for (_, place), row in found.items()} == {BEFORE: (0, 1), 0: (20, 0)}
    assert found["production", BEFORE].last_ns is None


def test_long_window_has_longer_slices_so_that_their_number_is_bounded(spark: SparkSession) -> None:
    """An hour, too: its nanoseconds do not fit 32 bits."""
    closed_ns = OPENED + 3_600_000_000_000
    assert {place for _, place in sums(spark, [sent(closed_ns), sent(OPENED + 1)], closed_ns)} == {0, SLICES_MAX - 1}
