"""Packets under way: what comes in leaves a fixed time later, in order. No clock and no socket: time is an argument."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# More would be minutes of traffic; what exceeds it is dropped and counted, as a switch drops what it cannot hold.
PACKETS_MAX: Final = 100_000


class DelayLine:
    """One queue for each delay, so that each is in the order in which its packets are due."""

    def __init__(self, packets_max: int = PACKETS_MAX) -> None:
        self._queues: dict[int, deque[tuple[int, int, bytes]]] = {}
        self._packets_max = packets_max
        self._held = 0
        self.dropped = 0

    def put(self, now_ns: int, delay_ns: int, out: int, packet: bytes) -> None:
        """Take a packet that is to leave by `out` when `delay_ns` has passed."""
        if self._held == self._packets_max:
            self.dropped += 1
            return
        queue = self._queues.get(delay_ns)
        if queue is None:
            queue = self._queues[delay_ns] = deque()
        queue.append((now_ns + delay_ns, out, packet))
        self._held += 1

    def due(self, now_ns: int) -> Iterator[tuple[int, bytes]]:
        """Let go of every packet whose time has come, with where it leaves."""
        for queue in self._queues.values():
            while queue and queue[0][0] <= now_ns:
                _, out, packet = queue.popleft()
                self._held -= 1
                yield out, packet

    def next_due_ns(self) -> int | None:
        """When the next packet leaves; None while nothing is under way."""
        return min((queue[0][0] for queue in self._queues.values() if queue), default=None)
