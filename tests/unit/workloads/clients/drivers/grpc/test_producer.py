"""Which messages go to which partition, by the driver `grpc`."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.clients.jobs import produce_job
from workloads.clients.drivers.api import WindowOrder
from workloads.clients.drivers.grpc.producer import Allotment


@given(st.integers(0, 100), st.integers(1, 7), st.booleans(), st.lists(st.integers(0, 2), max_size=60))
def test_an_exact_number_of_messages_is_given_once_each_whoever_asks(
    messages: int, batch_size: int, paced: bool, asking: list[int]
) -> None:
    job = produce_job(Path(), batch_size=batch_size)
    allotment = Allotment(job, WindowOrder(1, messages, 100.0 if paced else None), 1000)
    given_out: list[int] = []
    for partition in [*asking, *(number for number in range(3) for _ in range(messages + 1))]:
        if (batch := allotment.next(partition)) is not None:
            given_out += batch[0]
            assert len(batch[0]) == batch_size or batch[0].stop == 1000 + messages
    assert sorted(given_out) == list(range(1000, 1000 + messages))
    assert allotment.end == 1000 + messages


def test_as_fast_as_possible_the_next_batch_goes_to_whoever_asks() -> None:
    allotment = Allotment(produce_job(Path(), batch_size=10), WindowOrder(1), 0)
    assert [allotment.next(partition) for partition in (2, 2, 0)] == [
        (range(10), None), (range(10, 20), None), (range(20, 30), None),
    ]  # fmt: skip


def test_at_a_fixed_rate_partitions_take_turns_and_each_batch_has_its_time() -> None:
    allotment = Allotment(produce_job(Path(), batch_size=10, producer=1), WindowOrder(1, None, 1000.0), 0)
    ms = 1_000_000
    assert [allotment.next(1), allotment.next(1)] == [(range(10), 0), (range(30, 40), 30 * ms)]
    assert allotment.next(2) == (range(10, 20), 10 * ms)
    assert allotment.next(0) == (range(20, 30), 20 * ms)
    assert allotment.end == 40
