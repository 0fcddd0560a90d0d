"""What drivers share: payloads that tell themselves apart, jobs that cross to a process, counts that add up, and when a
job that goes by time is over."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.clients.jobs import consume_job, produce_job
from workloads.clients.drivers import api
from workloads.clients.drivers.api import COUNTER_BITS, OK, Deadline, Produced, ProduceJob
from workloads.errors import UserError


@given(st.integers(0, 2**16 - 1), st.integers(0, 2**48 - 50), st.integers(1, 40), st.integers(8, 64))
def test_payloads_are_unique_of_their_size_and_right(producer: int, first: int, count: int, size: int) -> None:
    made = list(api.payloads(produce_job(Path(), producer=producer, message_size=size), first, count))
    job = consume_job(Path(), message_size=size)
    assert len(set(made)) == count
    assert all(len(payload) == size and api.payload_is_right(payload, job) for payload in made)
    numbers = [int.from_bytes(payload[:8], "big") for payload in made]
    assert numbers == [(producer << COUNTER_BITS) + counter for counter in range(first, first + count)]


@given(st.integers(9, 64), st.data())
def test_a_payload_that_is_changed_behind_its_id_or_in_its_length_is_wrong(size: int, data: st.DataObject) -> None:
    (payload,) = api.payloads(produce_job(Path(), message_size=size), 5, 1)
    job = consume_job(Path(), message_size=size)
    at = data.draw(st.integers(8, size - 1))
    changed = payload[:at] + bytes([payload[at] ^ data.draw(st.integers(1, 255))]) + payload[at + 1 :]
    assert not api.payload_is_right(changed, job)
    assert not api.payload_is_right(payload[:at], job)
    assert not api.payload_is_right(payload + b"\xa5", job)


def test_jobs_cross_to_the_client_as_json_and_come_back_the_same(tmp_path: Path) -> None:
    sent_over = json.loads(json.dumps(asdict(produce_job(tmp_path))))
    assert ProduceJob(**{**sent_over, "bootstrap": tuple(sent_over["bootstrap"])}) == produce_job(tmp_path)


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


def test_a_job_that_goes_by_time_is_over_so_long_after_its_first_message(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(api, "monotonic", lambda: now)
    deadline, endless = Deadline(2.0), Deadline(None)
    now = 1000.0
    assert not deadline.over, "no message has come"
    for each in (deadline, endless):
        each.begin()
    now = 1001.9
    deadline.begin()
    assert not deadline.over
    now = 1002.0
    assert deadline.over, "a second beginning moves nothing"
    now = 1e12
    assert not endless.over
