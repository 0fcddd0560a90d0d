"""What each client of a trial is asked: shares that add up to the whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.run.plans import plan
from workloads.clients.drivers.api import DriverError
from workloads.spec.plan import Trial
from workloads.trial.jobs import Jobs, refuse_shares, share
from workloads.trial.record import Size


@given(st.integers(0, 10_000), st.integers(1, 64))
def test_shares_add_up_and_differ_by_one_at_most(total: int, parts: int) -> None:
    found = [share(total, parts, number) for number in range(parts)]
    assert sum(found) == total
    assert max(found) - min(found) <= 1


def test_a_group_may_share_partitions_in_any_way_that_gives_each_to_one_consumer() -> None:
    refuse_shares(3, [[2], [], [0, 1]])


@pytest.mark.parametrize("shares", [[[0, 1], []], [[0, 1], [1, 2]], [[0, 1, 2, 3], []]])
def test_a_trial_fails_where_a_partition_is_read_by_nobody_or_by_two(shares: list[list[int]]) -> None:
    with pytest.raises(DriverError, match="the consumers share 3 partitions as"):
        refuse_shares(3, shares)


# --- jobs -----------------------------------------------------------------------------------------------------

TWO = plan(
    experiments="""experiments:
  one: {message_size: 32B, batch_size: 10, mode: [split, streaming], producers: 2, consumers: 2, partitions: 3,
        rate: 500, driver: kafka}
""",
    profile="{experiments: one, messages: 301, tries: 1}",
)
SPLIT, STREAMING = sorted(TWO.trials, key=lambda trial: trial.cell.mode)


WHOLE = Size(301, 301)


def jobs(trial: Trial = SPLIT, size: Size | None = WHOLE, timeout_s: float = 60.0) -> Jobs:
    return Jobs(trial, size, ("here:1",), "trial-1", Path("work"), timeout_s)


def test_producers_share_messages_and_rate_and_write_files_of_their_own() -> None:
    first, second = (jobs().produce(number) for number in range(2))
    orders = [jobs().order("producer", number) for number in range(2)]
    assert [(order.messages, order.rate) for order in orders] == [(151, 250), (150, 250)]
    assert (first.producer, second.producer) == (0, 1)
    assert first.out != second.out
    assert (first.history, first.tell_every) == (False, 0)


def test_consumers_share_the_partitions_and_one_group() -> None:
    first, second = (jobs().consume(number) for number in range(2))
    refuse_shares(3, [first.partitions, second.partitions])
    assert first.group == second.group


def test_a_warm_up_goes_by_time() -> None:
    timed = jobs(size=None)
    timed = replace(timed, trial=replace(SPLIT, length=replace(SPLIT.length, duration_s=0.5)))
    assert (timed.order("producer", 0).messages, timed.duration_s()) == (None, 0.5)


def test_receipts_are_noted_where_both_ends_run_together() -> None:
    assert jobs(STREAMING).consume(0).end_to_end
    assert not jobs(SPLIT).consume(0).end_to_end


def test_a_producer_gives_up_before_its_trial_does() -> None:
    assert jobs(timeout_s=60).produce(0).answer_within_s == 45
    assert jobs(timeout_s=0.4).produce(0).answer_within_s == 1


def test_both_ends_are_told_to_write_a_history_or_neither() -> None:
    asked = replace(jobs(), history=True, tell_every=7)
    assert asked.produce(1).history
    assert asked.produce(1).tell_every == 7
    assert asked.consume(1).history
