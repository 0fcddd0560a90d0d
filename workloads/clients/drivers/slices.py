"""Rows of slices of time, for a driver whose library hides its requests."""

from __future__ import annotations

from typing import Final

from workloads.clients.drivers.api import OK, RequestRow
from workloads.results import bucket_of

# A window is cut at ends of rows, so these bound how finely. A row costs some microseconds.
SLICE_NS: Final = 5_000_000


class Slices:
    """The rows of one window, from its batches in the order of their ends.

    A row has the first send and the last end of its batches, so messages between the ends of two rows are exact.
    """

    def __init__(self, message_size: int, window_number: int, *, latencies: bool) -> None:
        """`latencies` says whether the time from a batch's send to its end is one, and is kept."""
        self.rows: list[RequestRow] = []
        self._message_size = message_size
        self._window_number = window_number
        self._latencies = latencies
        self._requests = self._messages = 0
        self._sent_ns = self._done_ns = self._ends_ns = 0
        self._latency: dict[int, int] = {}

    def note(self, messages: int, sent_ns: int, done_ns: int) -> None:
        """A batch came to its end."""
        if done_ns >= self._ends_ns:
            self.close()
            self._ends_ns = done_ns + SLICE_NS
        if not self._requests or sent_ns < self._sent_ns:
            self._sent_ns = sent_ns
        self._requests += 1
        self._messages += messages
        self._done_ns = done_ns
        if self._latencies:
            index = bucket_of(done_ns - sent_ns)
            self._latency[index] = self._latency.get(index, 0) + 1

    def close(self) -> None:
        """End the slice with a row, if anything came to its end in it."""
        if self._requests:
            latency = self._latency if self._latencies else None
            size = self._messages * self._message_size
            times = (self._sent_ns, self._done_ns)
            row = RequestRow(-1, self._requests, self._messages, size, *times, OK, latency, self._window_number)
            self.rows.append(row)
        self._requests = self._messages = 0
        self._latency = {}
