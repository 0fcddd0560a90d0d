"""Which batches a producer hands over next, and where a consumer's batches begin and end."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# What is handed over of all partitions together, beyond what can be under way in any case.
HANDED_OVER_BYTES_MAX: Final = 256 * 1024 * 1024
# A call hands over so many messages, or one batch: a longer one would keep the other partitions waiting.
CALL_MESSAGES_MAX: Final = 1000


class Feed:
    """How many batches go to which partition.

    A connection has `in_flight` requests under way. Each partition is kept at two to three times as many batches handed
    over and not acknowledged, so a connection has its next request at hand while the client is busy, and how much more
    is at hand decides nothing. Large batches have less in reserve, but never fewer than one more than `in_flight`.
    """

    def __init__(self, partitions: int, in_flight: int, batch_size: int, message_size: int) -> None:
        self.under_way = [0] * partitions
        affordable = HANDED_OVER_BYTES_MAX // (partitions * batch_size * message_size)
        self._most = max(in_flight + 1, min(3 * in_flight, affordable))
        self._together = min(in_flight, max(1, CALL_MESSAGES_MAX // batch_size)) if affordable >= 3 * in_flight else 1
        self._turn = 0
        self.hungry = True  # perhaps a partition has room

    def next(self, left: int | None) -> list[tuple[int, int]]:
        """Partitions that have room, in turn, and how many batches each is to be given; `left` are those that the
        window still has, in all, and None are any number. They count as handed over."""
        partitions = len(self.under_way)
        share = self._together if left is None else min(self._together, -(-left // partitions))
        given = []
        for step in range(partitions):
            partition = (self._turn + step) % partitions
            batches = share if left is None else min(share, left)
            if batches and self.under_way[partition] + self._together <= self._most:
                self.under_way[partition] += batches
                given.append((partition, batches))
                left = None if left is None else left - batches
        self._turn = (self._turn + 1) % partitions
        self.hungry = bool(given)
        return given

    def ended(self, partition: int) -> None:
        """A batch of the partition was acknowledged, or has failed."""
        self.under_way[partition] -= 1
        if self.under_way[partition] + self._together <= self._most:
            self.hungry = True


class Cut(NamedTuple):
    """Messages of one partition among others: from `start` to before `stop`."""

    partition: int
    start: int
    stop: int


def cut(partitions: Sequence[int], batch_size: int) -> list[Cut]:
    """Batches among messages in their order, of which these are the partitions. The last may go on in what comes
    next, where it has fewer than `batch_size` messages."""
    cuts, start = [], 0
    for partition, messages in groupby(partitions):
        stop = start + len(list(messages))
        cuts += [Cut(partition, at, min(at + batch_size, stop)) for at in range(start, stop, batch_size)]
        start = stop
    return cuts
