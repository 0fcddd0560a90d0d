"""The delay line: everything leaves when its time has come, never before, and in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workloads.topology.delay import DelayLine

PACKETS = st.lists(st.tuples(st.integers(0, 1000), st.sampled_from([100, 5_000])), max_size=60)


@given(PACKETS, st.lists(st.integers(0, 2_000), min_size=1, max_size=60))
def test_no_packet_leaves_before_its_time_or_after_the_first_look_behind_it(
    packets: list[tuple[int, int]], steps: list[int]
) -> None:
    line, now, waiting = DelayLine(), 0, set()
    for number, (pause, delay) in enumerate(packets):
        now += pause
        line.put(now, delay, delay, bytes([number]))
        waiting.add((now + delay, delay, number))
    for step in [*steps, 10**6]:
        assert line.next_due_ns() == min((due for due, _, _ in waiting), default=None)
        now += step
        gone = {(out, packet[0]) for out, packet in line.due(now)}
        assert gone == {(out, number) for due, out, number in waiting if due <= now}
        waiting = {each for each in waiting if each[0] > now}
    assert not waiting
    assert not line.dropped


@given(PACKETS)
def test_packets_of_one_way_stay_in_order(packets: list[tuple[int, int]]) -> None:
    line, now = DelayLine(), 0
    for number, (pause, delay) in enumerate(packets):
        now += pause
        line.put(now, delay, delay, bytes([number]))
    left = list(line.due(now + 10**6))
    for way in (100, 5_000):
        numbers = [packet for out, packet in left if out == way]
        assert numbers == sorted(numbers)


def test_what_a_full_line_cannot_hold_is_dropped_and_counted_and_room_comes_back() -> None:
    line = DelayLine(packets_max=2)
    for number in range(3):
        line.put(0, 10, 1, bytes([number]))
    assert [packet for _, packet in line.due(10)] == [b"\0", b"\1"]
    assert line.dropped == 1
    line.put(20, 10, 1, b"later")
    assert [packet for _, packet in line.due(30)] == [b"later"]
