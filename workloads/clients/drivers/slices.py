"""Rows of 10 ms, for a driver whose library hides its requests."""

from __future__ import annotations

from collections import deque
from time import monotonic_ns
from typing import TYPE_CHECKING, Final

from workloads.clients.drivers.api import OK, RequestRow
from workloads.results import bucket_of

if TYPE_CHECKING:
    from workloads.clients.drivers.api import ProduceJob

SLICE_NS: Final = 10_000_000


class Slices:
    """Rows of 10 ms from the number of messages acknowledged so far, and what was handed over when."""

    def __init__(self, job: ProduceJob) -> None:
        self.rows: list[RequestRow] = []
        self._job = job
        self._on_their_way: deque[tuple[int, int]] = deque()  # handed over so far, sent_ns
        self._count = self._count_before = self._matched = 0
        self._latency: dict[int, int] = {}
        self._sent_ns = self._done_ns = self._ends_ns = 0

    def sent(self, handed_over: int, sent_ns: int) -> None:
        self._on_their_way.append((handed_over, sent_ns))

    def acknowledged(self, count: int) -> None:
        """`count` messages are acknowledged by now, since the beginning; or fewer than that, for a moment, while the
        library's own notices wait in the same queue."""
        if count <= self._count:
            return
        now_ns = monotonic_ns()
        if now_ns >= self._ends_ns:
            self.close()
            self._ends_ns = now_ns + SLICE_NS
            self._sent_ns = self._on_their_way[0][1]
        self._count, self._done_ns = count, now_ns
        while self._on_their_way and self._on_their_way[0][0] <= count:
            handed_over, sent_ns = self._on_their_way.popleft()
            index = bucket_of(now_ns - sent_ns)
            self._latency[index] = self._latency.get(index, 0) + self._requests(handed_over - self._matched)
            self._matched = handed_over

    def close(self) -> None:
        """End the slice with a row, if anything was acknowledged in it."""
        messages = self._count - self._count_before
        if messages:
            size = messages * self._job.message_size
            row = (-1, self._requests(messages), messages, size, self._sent_ns, self._done_ns, OK, self._latency)
            self.rows.append(RequestRow(*row))
        self._count_before, self._latency = self._count, {}

    def _requests(self, messages: int) -> int:
        return -(-messages // self._job.batch_size)
