"""Which leader epoch began at which offset.

A follower that finds its log longer than the leader's cuts it at the end of the last epoch that both know (KIP-101).
The log itself uses the list to check the one field of a stored batch that no CRC covers: its leader epoch.
"""

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter
from typing import Final

UNKNOWN_EPOCH: Final = -1
OFFSET_MAX: Final = (1 << 63) - 1
OFFSET_BOUND: Final = 1 << 62  # no log comes so far: a larger one was not written by this program


class Epochs:
    """Pairs of (epoch, first offset), both strictly rising."""

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self.entries = list(entries)

    @property
    def latest(self) -> int:
        """The epoch of the last batch; UNKNOWN_EPOCH in an empty log."""
        return self.entries[-1][0] if self.entries else UNKNOWN_EPOCH

    def begin(self, epoch: int, offset: int) -> None:
        """Note that `epoch`, higher than all before, starts at `offset`."""
        assert epoch > self.latest, f"epoch {epoch} after {self.latest}"
        while self.entries and self.entries[-1][1] >= offset:
            self.entries.pop()
        self.entries.append((epoch, offset))

    def span_at(self, offset: int) -> tuple[int, int]:
        """The epoch under which `offset` was written, and the first offset behind it that another one may have."""
        behind = bisect_right(self.entries, offset, key=itemgetter(1))
        end = self.entries[behind][1] if behind < len(self.entries) else OFFSET_MAX
        return (self.entries[behind - 1][0] if behind else UNKNOWN_EPOCH), end

    def end_of(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch` and the offset where it ended; the log's end for the latest one.

        (UNKNOWN_EPOCH, the first epoch's start) when every known epoch is higher.
        """
        at = bisect_right(self.entries, epoch, key=itemgetter(0))
        if not self.entries:
            return UNKNOWN_EPOCH, end_offset
        end = self.entries[at][1] if at < len(self.entries) else end_offset
        return (self.entries[at - 1][0], end) if at else (UNKNOWN_EPOCH, end)

    def cut(self, offset: int) -> None:
        """Forget epochs that start at or behind `offset`: their batches are gone."""
        while self.entries and self.entries[-1][1] >= offset:
            self.entries.pop()

    def drop_before(self, offset: int) -> None:
        """Forget epochs that ended at or before `offset`, the log's new start."""
        keep = max(bisect_right(self.entries, offset, key=itemgetter(1)) - 1, 0)
        del self.entries[:keep]
