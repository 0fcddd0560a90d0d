"""Latency from end to end: sends and receipts joined by the messages' ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.clients.jobs import consume_job, produce_job
from workloads.clients.client_files import write_consumed, write_produced
from workloads.clients.drivers.api import COUNTER_BITS, Consumed, Produced, Receipt
from workloads.measure.end_to_end import _histogram, end_to_end
from workloads.results import bucket_of


def ids(*messages: tuple[int, int]) -> bytearray:
    """Of messages by producer and counter."""
    return bytearray(b"".join(((one << COUNTER_BITS) + counter).to_bytes(8, "big") for one, counter in messages))


def producer(folder: Path, number: int, *sends: tuple[int, int]) -> Path:
    out = folder / f"producer-{number}"
    write_produced(produce_job(out, producer=number), Produced(sends=list(sends)))
    return out


def consumer(folder: Path, number: int, seen: Consumed) -> Path:
    out = folder / f"consumer-{number}"
    write_consumed(consume_job(out, consumer=number), seen)
    return out


def test_each_message_counts_from_the_send_it_went_with_to_the_receipt_it_came_with(tmp_path: Path) -> None:
    producers = [producer(tmp_path, 0, (0, 100), (2, 200)), producer(tmp_path, 1, (0, 150))]
    seen = Consumed(ids={0: ids((0, 0), (1, 0), (0, 1)), 2: ids((0, 2), (0, 3))})
    seen.receipts = {0: [Receipt(2, 400, 1), Receipt(1, 500, 1)], 2: [Receipt(2, 1000, 2)]}
    (row,) = end_to_end("t", producers, [consumer(tmp_path, 0, seen)])
    assert row == {
        "trial_id": "t", "client": 0, "kind": "end_to_end",
        "latency_index": [250, 300, 400, 800], "latency_count": [1, 1, 1, 2],
    }  # fmt: skip


def test_each_consumer_has_a_row_of_its_own_and_one_that_noted_nothing_has_none(tmp_path: Path) -> None:
    producers = [producer(tmp_path, 0, (0, 0))]
    seen = [Consumed(ids={0: ids((0, 0))}), Consumed(ids={1: ids((0, 1))}), Consumed(ids={2: ids((0, 2))})]
    seen[0].note_receipt(0, 1, 7)
    seen[2].note_receipt(2, 1, 9)
    consumers = [consumer(tmp_path, number, each) for number, each in enumerate(seen)]
    found = end_to_end("t", producers, consumers)
    assert [(row["client"], row["latency_index"]) for row in found] == [(0, [7]), (2, [9])]


def test_a_message_that_no_producer_sent_has_no_latency(tmp_path: Path) -> None:
    seen = Consumed(ids={0: ids((9, 0), (0, 0))})
    seen.note_receipt(0, 2, 50)
    (row,) = end_to_end("t", [producer(tmp_path, 0, (0, 10))], [consumer(tmp_path, 0, seen)])
    assert (row["latency_index"], row["latency_count"]) == ([40], [1])


@given(st.lists(st.integers(0, 2**45), min_size=1))
def test_a_histogram_loses_no_message_and_has_the_buckets_of_all_others(values: list[int]) -> None:
    found = _histogram(np.array(values, np.int64))
    assert sum(found.values()) == len(values)
    assert list(found) == sorted({bucket_of(value) for value in values})
