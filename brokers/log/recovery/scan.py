"""Walk along the batches of a segment file and prove each of them.

A stored batch is good when its format, length, count, offset and leader epoch are what they must be at its place and
its CRC holds. The walk stops at the first that is not; whether good ones follow is looked for apart (resync.py).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from brokers.log.files import Files
from brokers.log.index import NO_TIMESTAMP, Extent, Index
from brokers.log.recovery.resync import next_good
from brokers.wire.batch import CRC_BEGIN, HEADER, HEADER_BYTES, LENGTH_END, LENGTH_MIN, MAGIC, NO_PRODUCER, BatchHeader

CHUNK_BYTES: Final = 1024 * 1024

EpochSpan = Callable[[int, int], tuple[int, int]]
"""(offset, epoch found there) -> (the epoch that a batch there must carry, the first offset where that may change)."""


def good_batches(
    files: Files, handle: int, begin: int, end: int, offset: int, epoch_span: EpochSpan
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each good batch from `begin`, where `offset` must be, up to the first that is not good.

    Long for a function, because it runs once for every batch of a scan: unrolled it is twice as fast.
    """
    data = memoryview(b"")
    at, position = 0, begin
    epoch, epoch_end = NO_PRODUCER, offset
    while end - position >= HEADER_BYTES:
        if len(data) - at < HEADER_BYTES:
            data, at = memoryview(files.pread(handle, min(CHUNK_BYTES, end - position), position)), 0
            if len(data) < HEADER_BYTES:
                return
        header = BatchHeader._make(HEADER.unpack_from(data, at))
        base_offset, length, leader_epoch, magic, crc, _, last_offset_delta, *_, count = header
        if magic != MAGIC or base_offset != offset or last_offset_delta != count - 1 or count < 1:
            return
        if not LENGTH_MIN <= length <= end - position - LENGTH_END:
            return
        if offset >= epoch_end:
            epoch, epoch_end = epoch_span(offset, leader_epoch)
        if leader_epoch != epoch:
            return
        size = length + LENGTH_END
        if len(data) - at < size:
            data, at = memoryview(files.pread(handle, min(max(CHUNK_BYTES, size), end - position), position)), 0
            if len(data) < size:
                return
        if crc32c(data[at + CRC_BEGIN : at + size]) != crc:
            return
        yield position, header
        at += size
        position += size
        offset += count


@dataclass(frozen=True, slots=True)
class Hole:
    """Bytes that are no good batch, and the offsets that they held, with a good batch behind them."""

    position: int
    offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The content of a segment's bytes: the good batches that `extent` spans, and the holes between them."""

    index: Index
    extent: Extent
    idempotent: bool
    holes: tuple[Hole, ...]


def survey(
    files: Files, handle: int, extent: Extent, interval_bytes: int, epoch_span: EpochSpan, known_end: int
) -> Surveyed:
    """All good batches of a segment, those behind damage as well.

    `extent` gives the segment's base offset, the offset that none of its batches goes beyond, and the file's size;
    `known_end` is where it may end, for all that is known. Each hole is followed by an entry of the index, so that only
    the damaged batches themselves cannot be found.
    """
    index, holes = Index(interval_bytes), []
    idempotent = False
    offset, end, timestamp_max = extent.base_offset, 0, NO_TIMESTAMP
    place: tuple[int, int] | None = (0, offset)
    while place is not None:
        for position, header in good_batches(files, handle, place[0], extent.size, place[1], epoch_span):
            if offset + header.records_count > extent.end_offset:
                break
            if position >= index.due_position:
                index.add(offset, position, timestamp_max)
            timestamp_max = max(timestamp_max, header.max_timestamp)
            idempotent |= header.producer_id != NO_PRODUCER
            offset, end = offset + header.records_count, position + header.length + LENGTH_END
        place = next_good(files, handle, (end, offset), (extent.size, extent.end_offset), known_end, epoch_span)
        if place is not None:
            if not len(index):
                index.add(offset, 0, timestamp_max)
            holes.append(Hole(end, offset, place[1]))
            end, offset = place
            index.add(offset, end, timestamp_max)
    return Surveyed(index, Extent(extent.base_offset, offset, end, timestamp_max), idempotent, tuple(holes))
