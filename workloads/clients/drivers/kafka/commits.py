"""When a consumer commits, which places, and whether it waits for the answer: decided here, done by the consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workloads.clients.drivers.api import ConsumeJob

_NS_PER_MS = 1_000_000


class Commit(NamedTuple):
    """One commit: partition -> offset of the next message to read."""

    places: Mapping[int, int]
    wait: bool


class Commits:
    """The commits of one consumer.

    At most `in_flight` are under way: each so-many-th waits for its answer, and so for all before it, because a broker
    answers the commits of a connection in their order. Were there more, a window would end before its commits, and
    show a rate that cannot last.
    """

    def __init__(self, job: ConsumeJob) -> None:
        self._job = job
        self._moved: dict[int, int] = {}  # partitions that were read on since their last commit
        self._made = 0
        self._interval_began_ns = 0

    def begin(self, now_ns: int) -> None:
        """A window begins. Nothing is under way, and the interval of a commit counts from here."""
        self._made, self._interval_began_ns = 0, now_ns

    def after_batch(self, partition: int, offset: int, now_ns: int) -> Commit | None:
        """The commit that is due now that a batch of the partition is read up to the offset."""
        self._moved[partition] = offset
        if self._job.commit == "every_batch":
            return self._next()
        interval_ms = self._job.commit_interval_ms
        if interval_ms is None or now_ns - self._interval_began_ns < interval_ms * _NS_PER_MS:
            return None
        self._interval_began_ns = now_ns
        return self._next()

    def rest(self) -> Commit | None:
        """The commit that is due at a window's end."""
        return self._next()._replace(wait=True) if self._moved else None

    def _next(self) -> Commit:
        self._made += 1
        due, self._moved = Commit(self._moved, wait=self._made % self._job.in_flight == 0), {}
        return due
