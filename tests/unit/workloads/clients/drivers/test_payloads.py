"""Payloads tell themselves apart, a change in one is found, and what is made beforehand is what would be made later."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.clients.jobs import produce_job
from workloads.clients.drivers import payloads as payloads_module
from workloads.clients.drivers.api import COUNTER_BITS, ID_BYTES, NO_ID, ProduceJob
from workloads.clients.drivers.payloads import Stock, look_through, payload_is_right, payloads

SIZES = st.one_of(st.integers(8, 64), st.sampled_from([255, 256, 257, 1024]))


def first_id(payload: bytes) -> int:
    return int.from_bytes(payload[:ID_BYTES], "big")


@given(st.integers(0, 2**16 - 1), st.integers(0, 2**48 - 50), st.integers(1, 40), SIZES)
def test_payloads_are_unique_of_their_size_and_right(producer: int, first: int, count: int, size: int) -> None:
    made = payloads(produce_job(Path(), producer=producer, message_size=size), first, count)
    assert all(type(payload) is bytes and payload_is_right(payload, size) for payload in made)
    numbers = list(map(first_id, made))
    assert numbers == [(producer << COUNTER_BITS) + counter for counter in range(first, first + count)]


@given(st.integers(9, 300), st.data())
def test_a_payload_that_is_changed_behind_its_id_or_in_its_length_is_wrong(size: int, data: st.DataObject) -> None:
    (payload,) = payloads(produce_job(Path(), message_size=size), 5, 1)
    at = data.draw(st.integers(8, size - 1))
    changed = payload[:at] + bytes([payload[at] ^ data.draw(st.integers(1, 255))]) + payload[at + 1 :]
    assert not payload_is_right(changed, size)
    assert not payload_is_right(payload[:at], size)
    assert not payload_is_right(payload + b"\xa5", size)


@given(st.sampled_from([8, 9, 32, 300]), st.data())
def test_looking_at_many_payloads_finds_what_looking_at_each_finds(size: int, data: st.DataObject) -> None:
    values = payloads(produce_job(Path(), message_size=size), 1, 12)
    for at in data.draw(st.lists(st.integers(0, 11), max_size=3)):
        cut, more = data.draw(st.integers(0, size)), data.draw(st.binary(max_size=3))
        values[at] = data.draw(st.sampled_from([values[at][:cut] + more, values[at][:-1] + b"x", values[at]]))
    ids, wrong = look_through(values, size)
    assert wrong == sum(not payload_is_right(value, size) for value in values)
    assert ids == b"".join(value[:ID_BYTES].ljust(ID_BYTES, NO_ID) for value in values)


@given(st.lists(st.tuples(st.sampled_from(["prepare", "take"]), st.integers(0, 9000)), max_size=8))
def test_a_stock_gives_consecutive_payloads_however_many_are_ready(steps: list[tuple[str, int]]) -> None:
    stock, counter = Stock(produce_job(Path(), producer=0, message_size=8)), 0
    for step, messages in steps:
        if step == "prepare":
            stock.prepare(messages)
        else:
            assert list(map(first_id, stock.take(messages))) == list(range(counter, counter + messages))
            counter += messages


def test_what_is_made_beforehand_has_its_bound_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real = payloads_module.payloads

    def counting(job: ProduceJob, first: int, count: int) -> list[bytes]:
        made.append(count)
        return real(job, first, count)

    monkeypatch.setattr(payloads_module, "payloads", counting)
    monkeypatch.setattr(payloads_module, "READY_BYTES_MAX", 1_000_000)
    monkeypatch.setattr(payloads_module, "_MADE_TOGETHER_BYTES_MAX", 100_000)
    stock = Stock(produce_job(Path(), message_size=10_000))
    stock.prepare(1_000_000)
    assert sum(made) * 10_000 <= 1_000_000
    assert max(made) * 10_000 <= 100_000
    ready = sum(made)
    stock.take(ready // 2)
    stock.prepare(ready)
    assert sum(made) == ready + ready // 2, "what was not used is not made again"
