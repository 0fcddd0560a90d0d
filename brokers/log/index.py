"""The sparse index of one segment: which batch starts where, one entry for every few kilobytes.

Entries are three parallel arrays, so that finding one is a bisection in C and an entry costs 20 bytes:
  offsets     base offset of the batch at which the entry's interval starts
  positions   where that batch starts in the segment file
  timestamps  largest timestamp of all batches before it
An interval is what lies between two entries. A batch gets an entry once `interval_bytes` have been written since the
last one, so every batch of an interval starts within its first `interval_bytes`, however large its last batch is.

The file holds the arrays behind a header with the segment's extent, and a CRC-32C over all of it. It is a copy: any
doubt about it, and it is made again from the segment.
"""

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import islice
from operator import lt
from typing import Final

from crc32c import crc32c

_HEADER: Final = struct.Struct("<8sqqqqI")
_CRC: Final = struct.Struct("<I")
_FORMAT: Final = f"BLIDX1{sys.byteorder[0]}\n".encode()
NO_TIMESTAMP: Final = -1


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a segment file: its offsets, its bytes and its largest timestamp."""

    base_offset: int
    end_offset: int
    size: int
    timestamp_max: int

    @property
    def span(self) -> tuple[int, int, int]:
        """Offsets and bytes alone."""
        return self.base_offset, self.end_offset, self.size


class Index:
    """The entries of one segment, growing at its end."""

    __slots__ = ("due_position", "interval_bytes", "offsets", "positions", "timestamps")

    def __init__(self, interval_bytes: int) -> None:
        self.interval_bytes = interval_bytes
        self.offsets = array("q")
        self.positions = array("Q")
        self.timestamps = array("q")
        self.due_position = 0

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, offset: int, position: int, timestamp_max_before: int) -> None:
        """Note that a batch starts here. The caller asks only when `position >= due_position`."""
        self.offsets.append(offset)
        self.positions.append(position)
        self.timestamps.append(timestamp_max_before)
        self.due_position = position + self.interval_bytes

    def last_within(self, position_max: int, offset_max: int) -> int:
        """Number of the last entry that lies behind neither limit; the first one when all do."""
        at_position = bisect_right(self.positions, position_max)
        at_offset = bisect_right(self.offsets, offset_max)
        return max(min(at_position, at_offset) - 1, 0)

    def interval_with_timestamp(self, timestamp: int) -> int:
        """Number of the first interval that can hold a batch with this timestamp or a later one."""
        return max(bisect_left(self.timestamps, timestamp) - 1, 0)

    def cut(self, position: int) -> None:
        """Forget the entries at or behind `position`."""
        keep = bisect_left(self.positions, position)
        del self.offsets[keep:], self.positions[keep:], self.timestamps[keep:]
        self.due_position = position

    def is_in_order(self, extent: Extent) -> bool:
        """Whether it can be the index of a segment that spans this: entries that rise, from the first batch on."""
        if not 0 <= extent.base_offset <= extent.end_offset or extent.size < 0:
            return False
        if not len(self) or not extent.size:
            return not len(self) and not extent.size
        if self.positions[0] or self.offsets[0] != extent.base_offset:
            return False
        if self.positions[-1] >= extent.size or self.offsets[-1] >= extent.end_offset:
            return False
        return _rises(self.positions) and _rises(self.offsets)

    def encode(self, extent: Extent) -> bytes:
        """The content of the index file."""
        fields = (extent.base_offset, extent.end_offset, extent.size, extent.timestamp_max, len(self))
        body = b"".join(
            (
                _HEADER.pack(_FORMAT, *fields),
                self.offsets.tobytes(),
                self.positions.tobytes(),
                self.timestamps.tobytes(),
            )
        )
        return body + _CRC.pack(crc32c(body))


def _rises(column: "array[int]") -> bool:
    return all(map(lt, column, islice(column, 1, None)))


def decode_index(data: bytes, interval_bytes: int) -> tuple[Index, Extent] | None:
    """The index and the extent that it was written for, or None when the bytes are not what `encode` made."""
    if len(data) < _HEADER.size + _CRC.size or not data.startswith(_FORMAT):
        return None
    if crc32c(memoryview(data)[: -_CRC.size]) != _CRC.unpack_from(data, len(data) - _CRC.size)[0]:
        return None
    _, base_offset, end_offset, size, timestamp_max, count = _HEADER.unpack_from(data)
    if len(data) != _HEADER.size + 24 * count + _CRC.size:
        return None
    index = Index(interval_bytes)
    at = _HEADER.size
    for column in (index.offsets, index.positions, index.timestamps):
        column.frombytes(data[at : at + 8 * count])
        at += 8 * count
    index.due_position = size
    return index, Extent(base_offset, end_offset, size, timestamp_max)
