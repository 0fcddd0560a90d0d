"""What drivers share: jobs that cross to a process, and counts that add up."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.clients.jobs import consume_job, produce_job
from workloads.clients.drivers import api
from workloads.clients.drivers.api import OK, Consumed, ConsumeJob, Produced, ProduceJob, RequestRow
from workloads.errors import UserError


def test_jobs_cross_to_the_client_as_json_and_come_back_the_same(tmp_path: Path) -> None:
    sent_over = json.loads(json.dumps(asdict(produce_job(tmp_path))))
    assert ProduceJob(**{**sent_over, "bootstrap": tuple(sent_over["bootstrap"])}) == produce_job(tmp_path)
    sent_over = json.loads(json.dumps(asdict(consume_job(tmp_path))))
    lists = {name: tuple(sent_over[name]) for name in ("bootstrap", "partitions")}
    assert ConsumeJob(**{**sent_over, **lists}) == consume_job(tmp_path)


def test_a_driver_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UserError, match=r"driver must be one of .*grpc.*, not 'smoke'"):
        api.load("smoke")


def test_every_driver_has_its_two_parts() -> None:
    for name in api.DRIVERS:
        module = api.load(name)
        assert {"Producer", "Consumer"} <= vars(module).keys()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), st.sampled_from([OK, "NOT_LEADER", "X"])), max_size=20))
def test_every_message_that_is_noted_is_acknowledged_or_has_failed(notes: list[tuple[int, int, str]]) -> None:
    found, first = Produced(), 0
    for partition, count, status in notes:
        found.note(partition, range(first, first + count), status)
        first += count
    acknowledged = [counter for blocks in found.acknowledged.values() for block in blocks for counter in block]
    assert len(acknowledged) + sum(found.failed.values()) == first
    assert len(set(acknowledged)) == len(acknowledged)
    assert OK not in found.failed


def test_what_came_of_windows_adds_up() -> None:
    whole = Produced()
    for number, (partition, status) in enumerate([(0, OK), (1, OK), (0, "X"), (0, OK), (1, "X")]):
        part = Produced([RequestRow(partition, 1, 2, 32, number, number + 1, status)], [(2 * number, number)], sent=2)
        part.note(partition, range(2 * number, 2 * number + 2), status)
        whole.extend(part)
    assert [row.sent_ns for row in whole.rows] == list(range(5))
    assert whole.sends == [(0, 0), (2, 1), (4, 2), (6, 3), (8, 4)]
    assert (whole.sent, whole.failed) == (10, {"X": 4})
    assert whole.acknowledged == {0: [range(2), range(6, 8)], 1: [range(2, 4)]}


def test_what_was_read_in_windows_is_one_sequence_and_the_last_says_whether_it_is_dry() -> None:
    whole = Consumed()
    for number, dry in ((1, False), (2, True)):
        part = Consumed([RequestRow(-1, 1, 1, 16, 0, 1, OK)], {0: bytearray([number]), number: bytearray()})
        part.note_receipt(0, 1, 10 * number, number)
        part.wrong_payloads, part.commits, part.dry = number, 3, dry
        whole.extend(part)
    assert whole.ids == {0: bytearray([1, 2]), 1: bytearray(), 2: bytearray()}
    assert whole.receipts == {0: [(1, 10, 1), (1, 20, 2)]}
    assert (len(whole.rows), whole.wrong_payloads, whole.commits, whole.dry) == (2, 3, 6, True)


def test_consecutive_messages_of_a_partition_are_noted_as_one() -> None:
    found = Produced()
    for partition, counters in ((0, range(3)), (1, range(3, 4)), (0, range(4, 6)), (0, range(6, 9))):
        found.note(partition, counters, OK)
    assert found.acknowledged == {0: [range(3), range(4, 9)], 1: [range(3, 4)]}
