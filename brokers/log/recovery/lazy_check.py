"""The parts of a segment found on disk that are not proven yet.

A start that read every byte would cost seconds for gigabytes that nobody asks for. So a segment that was closed in
order is taken as it is, and each interval of its index is proven once, just before its first byte is served: same
batches, same offsets, same epochs, every CRC. An interval that fails is damaged from its first bad batch to the next
entry of the index, and says so to every reader that comes there; what lies around it is served. A segment that was
scanned and is damaged is known from the start: all its intervals are proven but those with holes.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from brokers.log.errors import LogDiskFailed, LogUnreadable
from brokers.log.index import Index
from brokers.log.recovery.report import Damage
from brokers.log.recovery.scan import EpochSpan, Hole, good_batches
from brokers.wire.batch import LENGTH_END

if TYPE_CHECKING:
    from brokers.log.segment import Segment

_PROVEN: Final = 1
PROVEN_AT_ONCE_BYTES_MAX: Final = 256 * 1024  # with the smallest batches some 5 ms, for which nobody else is served


class Doubt:
    """One flag for each index interval that the segment had when it was found, and where the damaged ones go wrong."""

    __slots__ = ("_damage", "_end", "_epoch_span", "_flags", "_tell")

    def __init__(
        self,
        index: Index,
        end: tuple[int, int],
        epoch_span: EpochSpan,
        tell: Callable[[Damage], None],
        holes: Sequence[Hole] = (),
    ) -> None:
        """`tell` is called for each damage that is found later than `holes`, which a scan of the segment has found."""
        self._flags = bytearray([_PROVEN] * len(index) if holes else len(index))
        self._end = end
        self._epoch_span = epoch_span
        self._tell = tell
        self._damage: dict[int, tuple[int, int]] = {}
        for hole in holes:
            interval = bisect_right(index.positions, hole.position) - 1
            self._flags[interval] = 0
            self._damage[interval] = hole.position, hole.offset

    @property
    def settled(self) -> bool:
        """Whether everything is proven, so that the doubt can be dropped."""
        return self._flags.count(_PROVEN) == len(self._flags)

    def readable_to(self, segment: "Segment", position: int, position_max: int) -> int:
        """How far the segment may be read from `position`, where a batch starts; at most `position_max`.

        Less than could be read if more than PROVEN_AT_ONCE_BYTES_MAX had to be proven for it.
        LogUnreadable when the batch at `position` is damaged itself.
        """
        first = bisect_right(segment.index.positions, position) - 1
        behind = min(bisect_right(segment.index.positions, position_max), len(self._flags))
        if self._flags.count(_PROVEN, first, behind) == behind - first:
            return position_max
        for interval in range(first, behind):
            begin = segment.index.positions[interval]
            if begin > position + PROVEN_AT_ONCE_BYTES_MAX:
                return begin
            good_end = self._prove(segment, interval)
            if good_end is not None:
                if good_end[0] <= position:
                    raise self._unreadable(segment, interval)
                return min(good_end[0], position_max)
        return position_max

    def check_offset(self, segment: "Segment", offset: int) -> None:
        """LogUnreadable when the batch with this offset is damaged. Afterwards its interval can be walked up to it."""
        interval = bisect_right(segment.index.offsets, offset) - 1
        if interval >= len(self._flags):
            return
        good_end = self._prove(segment, max(interval, 0))
        if good_end is not None and good_end[1] <= offset:
            raise self._unreadable(segment, interval)

    def cut(self, intervals: int, position: int, offset: int) -> None:
        """Follow the segment, which now ends here."""
        if position < self._end[0]:
            self._end = (position, offset)
            del self._flags[intervals:]
            self._damage = {interval: at for interval, at in self._damage.items() if at[0] < position}

    def _prove(self, segment: "Segment", interval: int) -> tuple[int, int] | None:
        """None when the interval is good, else the (position, offset) at which it stops being so."""
        if self._flags[interval] == _PROVEN:
            return None
        known = self._damage.get(interval)
        if known is not None:
            return known
        position, offset = segment.index.positions[interval], segment.index.offsets[interval]
        end = self._end_of(segment, interval)
        found = good_batches(segment.files, segment.handle, position, end[0], offset, self._epoch_span)
        try:
            for at, header in found:
                position, offset = at + header.length + LENGTH_END, offset + header.records_count
        except OSError as error:
            raise LogDiskFailed(f"cannot prove {segment.path.name} at {position}: {error}") from error
        if (position, offset) != end:
            self._damage[interval] = position, offset
            damage = self._unreadable(segment, interval)
            self._tell(Damage(damage.begin, damage.end, damage.where))
            return position, offset
        self._flags[interval] = _PROVEN
        return None

    def _end_of(self, segment: "Segment", interval: int) -> tuple[int, int]:
        if interval + 1 < len(self._flags):
            return segment.index.positions[interval + 1], segment.index.offsets[interval + 1]
        return self._end

    def _unreadable(self, segment: "Segment", interval: int) -> LogUnreadable:
        position, begin = self._damage[interval]
        return LogUnreadable(begin, self._end_of(segment, interval)[1], f"{segment.path.name} at byte {position}")
