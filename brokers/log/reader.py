"""Finding and reading batches over the segments of one log.

A reader that goes on where its last read ended costs no search: the place is remembered, for a bounded number of
readers. The end of a read is found through the index and at most one interval of headers, never by parsing all that is
read; a read that reaches the log's end needs not even that.
"""

from bisect import bisect_right
from operator import attrgetter
from typing import Final

from brokers.log.errors import LogClosed, LogOffsetOutOfRange, LogUnreadable
from brokers.log.file_range import Stretch
from brokers.log.segment import OpenSegments, Segment
from brokers.wire.batch import HEADER_BYTES, parse_header

_BASE_OFFSET: Final = attrgetter("base_offset")


class Reader:
    """Reads from `segments`, a list that the log keeps up to date: sealed ones and, last, the one that grows."""

    __slots__ = ("_positions", "_positions_max", "_segments", "closed", "open_segments", "read_end")

    def __init__(self, segments: list[Segment], open_segments: OpenSegments, positions_max: int) -> None:
        self._segments = segments
        self.open_segments = open_segments
        self._positions_max = positions_max
        self._positions: dict[int, tuple[Segment, int]] = {}
        self.closed = False
        self.read_end = 0  # the offset behind the last batch of the last read that returned any

    def read(self, offset: int, bytes_max: int, records_max: int | None = None) -> bytes:
        """Whole batches, the first of them the one that contains `offset`; nothing at the log's end.

        As many as fit into `bytes_max` and hold no more than `records_max` records together, but always one. For a
        reader whose end is not the log's (of committed batches, say) the caller passes the records before that end.
        LogOffsetOutOfRange; LogUnreadable when the first batch is damaged on disk; LogDiskFailed.
        """
        found = self._find(offset, bytes_max, records_max)
        return b"" if found is None else found[0].read(found[2], found[1])

    def lend(self, offset: int, bytes_max: int, records_max: int | None, read_bytes_max: int) -> bytes | Stretch:
        """The batches that `read` gives; if they exceed `read_bytes_max`, they stay in their file for sending."""
        found = self._find(offset, bytes_max, records_max)
        if found is None:
            return b""
        segment, position, size = found
        return segment.read(size, position) if size <= read_bytes_max else Stretch(segment, position, size)

    def _find(self, offset: int, bytes_max: int, records_max: int | None) -> tuple[Segment, int, int] | None:
        """Segment, position and size of what is to be read; None at the log's end."""
        known = self._positions.get(offset)
        if known is not None:
            segment, position = known
            base_offset = offset
        elif offset == self._segments[-1].end_offset:
            return None
        else:
            segment, position, base_offset = self.locate(offset)
        if segment is not self._segments[-1]:
            self.open_segments.use(segment)
        elif position == segment.size:
            return None
        position_max = position + bytes_max
        if segment.doubt is not None:
            position_max = _readable_to(segment, position, position_max)
        offset_max = segment.end_offset if records_max is None else base_offset + records_max
        end, end_offset = segment.boundary_within((position, base_offset), position_max, offset_max)
        if end == position:
            end, end_offset = segment.batch_end(position)
        self.note_position(end_offset, segment, end)
        self.read_end = end_offset
        return segment, position, end - position

    def locate(self, offset: int) -> tuple[Segment, int, int]:
        """The segment, opened, and the position and base offset of the batch that contains `offset`."""
        segment = self._segment_with(offset)
        if segment.doubt is not None:
            segment.doubt.check_offset(segment, offset)
        position, base_offset = segment.boundary_within((0, segment.base_offset), segment.size, offset)
        return segment, position, base_offset

    def cut_point(self, offset: int) -> tuple[Segment, int, int]:
        """Where the log has to be cut so that `offset` goes: as `locate`, but behind the last good batch in damage."""
        in_damage = False
        while True:
            try:
                segment, position, base_offset = self.locate(offset)
                break
            except LogUnreadable as damage:
                in_damage, offset = True, damage.begin - 1
            if offset < self._segments[0].base_offset:
                self._use(self._segments[0])
                return self._segments[0], 0, self._segments[0].base_offset
        return (segment, *segment.batch_end(position)) if in_damage else (segment, position, base_offset)

    def _segment_with(self, offset: int) -> Segment:
        if self.closed:
            raise LogClosed("the log is closed")
        start_offset, last = self._segments[0].base_offset, self._segments[-1]
        if not start_offset <= offset < last.end_offset:
            raise LogOffsetOutOfRange(offset, start_offset, last.end_offset)
        number = bisect_right(self._segments, offset, key=_BASE_OFFSET) - 1
        segment = self._segments[number]
        if offset >= segment.end_offset:
            where = f"no segment file after {segment.path.name}"
            raise LogUnreadable(segment.end_offset, self._segments[number + 1].base_offset, where)
        self._use(segment)
        return segment

    def _use(self, segment: Segment) -> None:
        if segment is not self._segments[-1]:
            self.open_segments.use(segment)

    def note_position(self, offset: int, segment: Segment, position: int) -> None:
        """Remember where a reader that came this far goes on; the oldest is forgotten beyond the bound."""
        if position == segment.size and segment is not self._segments[-1]:
            return  # it goes on at the beginning of the next segment
        if len(self._positions) >= self._positions_max:
            del self._positions[next(iter(self._positions))]
        self._positions[offset] = segment, position

    def forget_positions(self) -> None:
        """Forget all places: segments were cut or removed."""
        self._positions.clear()

    def close(self) -> None:
        """Refuse to read from now on."""
        self.closed = True
        self.forget_positions()

    def batch_for_timestamp(self, timestamp: int) -> bytes | None:
        """The first batch with a record that is not older than `timestamp`; None when all records are older.

        LogUnreadable when the way to it leads through damage; LogDiskFailed; LogClosed.
        """
        if self.closed:
            raise LogClosed("the log is closed")
        for segment in self._segments:
            if segment.size and segment.timestamp_max >= timestamp:
                self._use(segment)
                return _first_from(segment, timestamp)
        return None


def _readable_to(segment: Segment, position: int, position_max: int) -> int:
    """How far the doubted segment may be read; the doubt is dropped once all of it is proven."""
    assert segment.doubt is not None
    readable = segment.doubt.readable_to(segment, position, position_max)
    if segment.doubt.settled:
        segment.doubt = None
    return readable


def _first_from(segment: Segment, timestamp: int) -> bytes | None:
    """The segment's first batch with a record from `timestamp` on."""
    position = segment.index.positions[segment.index.interval_with_timestamp(timestamp)]
    while position < segment.size:
        if segment.doubt is not None:
            _readable_to(segment, position, position + 1)
        header = parse_header(segment.read(HEADER_BYTES, position))
        if header.max_timestamp >= timestamp:
            return segment.read(header.size, position)
        position += header.size
    return None
