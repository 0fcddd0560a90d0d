"""The receive buffer: frames out of bytes, in place, within bounds."""

from __future__ import annotations

import struct

import pytest

from brokers.wire.budget import Budget
from brokers.wire.errors import MalformedReason
from brokers.wire.framing import FrameLimits, ReceiveBuffer

LIMITS = FrameLimits(produce_bytes_max=400_000, request_bytes_max=1_000, receive_bytes=65_536)


def frame(size: int, api_key: int = 3, fill: bytes = b"x") -> bytes:
    return struct.pack(">ih", size, api_key) + fill * (size - 2)


def fill(buffer: ReceiveBuffer, data: bytes, chunk: int = 1 << 20) -> list[bytes]:
    """Feed `data` as a socket would; copies of the frames that came out."""
    found = []
    while data and buffer.fault is None:
        room = buffer.writable()
        count = min(len(room), len(data), chunk)
        room[:count] = data[:count]
        found += [bytes(buffer.data[start:end]) for start, end in buffer.received(count)]
        data = data[count:]
    return found


def new(budget: int = 1_000_000, limits: FrameLimits = LIMITS) -> ReceiveBuffer:
    return ReceiveBuffer(limits, Budget(budget, limits.produce_bytes_max))


@pytest.mark.parametrize("chunk", [1, 3, 13, 1 << 20])
def test_frames_come_out_however_the_bytes_arrive(chunk: int) -> None:
    frames = [frame(size) for size in (10, 11, 200, 10, 999, 1000)]
    assert fill(new(), b"".join(frames), chunk) == [whole[4:] for whole in frames]


def test_two_frames_of_one_read_come_out_together() -> None:
    buffer = new()
    data = frame(10) + frame(20) + b"\0\0"
    buffer.writable()[: len(data)] = data
    assert buffer.received(len(data)) == [(4, 14), (18, 38)]


@pytest.mark.parametrize("size", [0, -1, -(2**31), 2**31 - 1, 400_001, 9, 1195725856, 369295616])
def test_an_impossible_size_is_a_fault_before_anything_is_allocated(size: int) -> None:
    buffer = new()
    assert fill(buffer, struct.pack(">i", size) + bytes(64)) == []
    assert buffer.fault is not None
    assert buffer.fault.reason is MalformedReason.FRAME_SIZE
    assert len(buffer.data) <= LIMITS.receive_bytes


def test_only_produce_may_be_larger_than_other_requests() -> None:
    large = frame(1_001, api_key=0)
    assert fill(new(), large) == [large[4:]]
    other = new()
    assert fill(other, frame(1_001, api_key=1)) == []
    assert other.fault is not None


def test_frames_before_a_fault_still_come_out() -> None:
    buffer = new()
    assert len(fill(buffer, frame(10) + struct.pack(">i", -1))) == 1
    assert buffer.fault is not None


def test_an_announced_size_alone_allocates_nothing() -> None:
    buffer = new()
    fill(buffer, struct.pack(">ih", 399_999, 0))
    assert len(buffer.data) <= LIMITS.receive_bytes


@pytest.mark.parametrize("size", [65_532, 65_533, 100_000, 400_000])
def test_a_large_request_grows_the_buffer_to_its_size_and_not_beyond(size: int) -> None:
    buffer = new()
    assert fill(buffer, frame(size, api_key=0)) == [frame(size, api_key=0)[4:]]
    assert len(buffer.data) <= max(size + 4, LIMITS.receive_bytes)


def test_the_buffer_shrinks_after_a_row_of_small_requests() -> None:
    budget = Budget(1_000_000, 400_000)
    buffer = ReceiveBuffer(LIMITS, budget)
    fill(buffer, frame(300_000, api_key=0))
    assert budget.bytes_left == 600_000 - (300_004 - LIMITS.receive_bytes)
    for _ in range(70):
        fill(buffer, frame(20))
    assert len(buffer.data) == LIMITS.receive_bytes
    assert budget.bytes_left == 600_000


def test_requests_that_are_more_than_there_is_room_for_become_whole_one_after_the_other() -> None:
    """However far each of them has come: the one that waited first needs nothing that another holds."""
    budget = Budget(700_000, 400_000)
    buffers = [ReceiveBuffer(LIMITS, budget) for _ in range(5)]
    large = frame(399_000, api_key=0)
    came = dict.fromkeys(buffers, 0)
    whole: list[ReceiveBuffer] = []
    while len(whole) < len(buffers):
        reading = [buffer for buffer in buffers if not buffer.waits and buffer not in whole]
        assert reading
        for buffer in reading:
            room = buffer.writable()
            some = large[came[buffer] : came[buffer] + min(len(room), 10_000)]
            room[: len(some)] = some
            came[buffer] += len(some)
            whole += [buffer for _ in buffer.received(len(some))]
            buffer.settle()
        assert sum(len(buffer.data) - LIMITS.receive_bytes for buffer in buffers) <= 700_000
    assert (budget.bytes_left, budget.crowded) == (300_000, False)


def test_a_request_that_can_never_have_room_is_a_fault() -> None:
    buffer = new(budget=100_000)
    assert fill(buffer, frame(300_000, api_key=0)) == []
    assert buffer.fault is not None
    assert buffer.fault.reason is MalformedReason.FRAME_BUDGET


def test_what_a_request_took_is_given_back_as_soon_as_others_wait() -> None:
    budget = Budget(700_000, 400_000)
    done, waiting = ReceiveBuffer(LIMITS, budget), ReceiveBuffer(LIMITS, budget)
    fill(done, frame(300_000, api_key=0))
    assert budget.bytes_left < 300_000
    assert fill(waiting, frame(350_000, api_key=0)) == [frame(350_000, api_key=0)[4:]]
    assert len(done.data) == LIMITS.receive_bytes


def test_what_waits_elsewhere_is_still_counted() -> None:
    budget = Budget(700_000, 400_000)
    buffer = ReceiveBuffer(LIMITS, budget)
    fill(buffer, frame(300_000, api_key=0))
    buffer.kept = True
    buffer.give_back()
    assert budget.bytes_left < 300_000
    buffer.kept = False
    buffer.give_back()
    assert budget.bytes_left == 300_000


def test_closing_gives_back_what_was_taken_and_lets_others_go_on() -> None:
    budget = Budget(400_000, 400_000)
    first, second = ReceiveBuffer(LIMITS, budget), ReceiveBuffer(LIMITS, budget)
    for buffer in (first, second):
        fill(buffer, frame(399_000, api_key=0)[: LIMITS.receive_bytes])
    assert [(buffer.waits, buffer.has_right_of_way) for buffer in (first, second)] == [(False, True), (True, False)]
    first.close()
    assert (second.waits, second.has_right_of_way) == (False, True)
    second.close()
    assert not budget.crowded


def test_a_quiet_connection_holds_little() -> None:
    buffer = new(limits=FrameLimits())
    fill(buffer, frame(20))
    assert len(buffer.data) <= 16_384


def test_a_client_that_falls_quiet_after_a_large_request_keeps_no_large_buffer() -> None:
    limits, budget = LIMITS, Budget(1_000_000, 400_000)
    buffer = ReceiveBuffer(limits, budget)
    large = frame(300_000, api_key=0)
    fill(buffer, large[:200_000])
    buffer.give_back()
    assert fill(buffer, large[200_000:]) == [large[4:]]
    buffer.give_back()
    assert (len(buffer.data), budget.bytes_left) == (limits.receive_bytes, 600_000)
    assert fill(buffer, large) == [large[4:]]


def test_a_closed_connection_holds_no_buffer() -> None:
    buffer = new()
    fill(buffer, frame(300_000, api_key=0))
    buffer.close()
    assert len(buffer.data) == 0
