"""Latency from end to end: sends and receipts joined by the messages' ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.clients.jobs import consume_job, produce_job
from tests.unit.workloads.trial.records import load
from workloads.clients.client_files import write_consumed, write_produced
from workloads.clients.drivers.api import COUNTER_BITS, Consumed, Produced, Receipt
from workloads.measure.end_to_end import _histogram, end_to_end
from workloads.results import bucket_of
from workloads.trial.record import Place, Window


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


def window(number: int, opened_ns: int | None = None, closed_ns: int | None = None) -> Window:
    return Window(Place(number, "both", round=number), opened_ns, closed_ns, load())


WHOLE = [window(1)]


def test_each_message_counts_from_the_send_it_went_with_to_the_receipt_it_came_with(tmp_path: Path) -> None:
    producers = [producer(tmp_path, 0, (0, 100), (2, 200)), producer(tmp_path, 1, (0, 150))]
    seen = Consumed(ids={0: ids((0, 0), (1, 0), (0, 1)), 2: ids((0, 2), (0, 3))})
    seen.receipts = {0: [Receipt(2, 400, 1), Receipt(1, 500, 1)], 2: [Receipt(2, 1000, 1)]}
    (row,) = end_to_end("t", producers, [consumer(tmp_path, 0, seen)], WHOLE)
    assert row == {
        "trial_id": "t", "client": 0, "window_number": 1, "kind": "end_to_end",
        "latency_index": [250, 300, 400, 800], "latency_count": [1, 1, 1, 2],
    }  # fmt: skip


def test_a_window_of_time_has_the_messages_that_came_while_it_was_open(tmp_path: Path) -> None:
    """Its first moment is in it, its last is not; what came before, between and behind windows is in none."""
    producers = [producer(tmp_path, 0, (0, 0))]
    seen = Consumed(ids={0: ids(*((0, counter) for counter in range(7)))})
    for at_ns, number in ((90, 0), (100, 1), (150, 1), (200, 1), (250, 2), (300, 2), (500, 2)):
        seen.note_receipt(0, 1, at_ns, number)
    windows = [window(1, 100, 200), window(2, 300, 400)]
    found = end_to_end("t", producers, [consumer(tmp_path, 0, seen)], windows)
    assert [(row["window_number"], row["latency_index"], row["latency_count"]) for row in found] == [
        (1, [100, 150], [1, 1]), (2, [300], [1]),
    ]  # fmt: skip


def test_whole_windows_lose_no_message_and_count_none_twice(tmp_path: Path) -> None:
    producers = [producer(tmp_path, 0, (0, 0))]
    seen = Consumed(ids={0: ids((0, 0), (0, 1), (0, 2)), 1: ids((0, 3))})
    for partition, at_ns, number in ((0, 10, 1), (0, 20, 1), (0, 30, 2), (1, 40, 2)):
        seen.note_receipt(partition, 1, at_ns, number)
    found = end_to_end("t", producers, [consumer(tmp_path, 0, seen)], [window(1), window(2)])
    assert sorted(index for row in found for index in row["latency_index"]) == [10, 20, 30, 40]
    assert sum(sum(row["latency_count"]) for row in found) == 4


def test_each_consumer_has_a_row_of_its_own_and_one_that_noted_nothing_has_none(tmp_path: Path) -> None:
    producers = [producer(tmp_path, 0, (0, 0))]
    seen = [Consumed(ids={0: ids((0, 0))}), Consumed(ids={1: ids((0, 1))}), Consumed(ids={2: ids((0, 2))})]
    seen[0].note_receipt(0, 1, 7, 1)
    seen[2].note_receipt(2, 1, 9, 1)
    consumers = [consumer(tmp_path, number, each) for number, each in enumerate(seen)]
    found = end_to_end("t", producers, consumers, WHOLE)
    assert [(row["client"], row["latency_index"]) for row in found] == [(0, [7]), (2, [9])]


def test_a_trial_without_windows_has_no_latency(tmp_path: Path) -> None:
    seen = Consumed(ids={0: ids((0, 0))})
    seen.note_receipt(0, 1, 7, 0)
    assert end_to_end("t", [producer(tmp_path, 0, (0, 0))], [consumer(tmp_path, 0, seen)], []) == []


def test_a_message_that_no_producer_sent_has_no_latency(tmp_path: Path) -> None:
    seen = Consumed(ids={0: ids((9, 0), (0, 0))})
    seen.note_receipt(0, 2, 50, 1)
    (row,) = end_to_end("t", [producer(tmp_path, 0, (0, 10))], [consumer(tmp_path, 0, seen)], WHOLE)
    assert (row["latency_index"], row["latency_count"]) == ([40], [1])


@given(st.lists(st.integers(0, 2**45), min_size=1))
def test_a_histogram_loses_no_message_and_has_the_buckets_of_all_others(values: list[int]) -> None:
    found = _histogram(np.array(values, np.int64))
    assert sum(found.values()) == len(values)
    assert list(found) == sorted({bucket_of(value) for value in values})
