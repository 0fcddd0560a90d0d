"""One file of the log: batches one after the other, as producers sent them except for offset and epoch.

Positions are found through the sparse index and a short walk along headers from there. Batches that this process
wrote are known to be good; those that it found at its start are in doubt until they are proven (see lazy_check.py).
"""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from weakref import ref

from brokers.log.errors import LogDiskFailed
from brokers.log.files import Buffer, Files, read_file, replace_file
from brokers.log.index import NO_TIMESTAMP, Extent, Index, decode_index
from brokers.log.recovery.lazy_check import Doubt
from brokers.wire.batch import EXTENT, HEADER_BYTES, LENGTH_END, parse_header

_BUFFERS_PER_CALL_MAX: Final = 1024  # IOV_MAX on Linux


class LentHandle:
    """A second handle of a segment's file, for all that is lent of it at one time; it goes with the last of them."""

    __slots__ = ("__weakref__", "_files", "number")

    def __init__(self, files: Files, number: int) -> None:
        self._files, self.number = files, number

    def __del__(self) -> None:
        self._files.close(self.number)


class Segment:
    """A segment file with its index. The last segment of a log is open for appending, all others are sealed."""

    __slots__ = (
        "base_offset", "cuts", "doubt", "end_offset", "files", "handle", "idempotent", "index", "index_path",
        "interval_bytes", "lent", "path", "size", "timestamp_max",
    )  # fmt: skip

    def __init__(self, files: Files, directory: Path, extent: Extent, interval_bytes: int) -> None:
        self.files = files
        self.path = directory / f"{extent.base_offset:020}.log"
        self.index_path = directory / f"{extent.base_offset:020}.index"
        self.base_offset = extent.base_offset
        self.end_offset = extent.end_offset
        self.size = extent.size
        self.timestamp_max = extent.timestamp_max
        self.interval_bytes = interval_bytes
        self.handle = -1
        self.cuts = 0
        self.lent: ref[LentHandle] | None = None  # what all that is lent of this file leaves through
        self.index = Index(interval_bytes)
        self.doubt: Doubt | None = None
        self.idempotent = True  # whether a batch of an idempotent producer may be in it

    @property
    def extent(self) -> Extent:
        """The extent of the segment now."""
        return Extent(self.base_offset, self.end_offset, self.size, self.timestamp_max)

    # Writing

    def write(self, buffers: Sequence[Buffer]) -> int:
        """Append the buffers to the file and return how many bytes were written, which may be fewer than asked."""
        if len(buffers) <= _BUFFERS_PER_CALL_MAX:
            return self.files.writev(self.handle, buffers)
        written = 0
        for first in range(0, len(buffers), _BUFFERS_PER_CALL_MAX):
            some = buffers[first : first + _BUFFERS_PER_CALL_MAX]
            count = self.files.writev(self.handle, some)
            written += count
            if count != sum(map(len, some)):
                break
        return written

    def cut(self, position: int, offset: int) -> None:
        """Make the segment end here; OSError when the disk refuses, the segment then is as it was."""
        self.files.truncate(self.handle, position)
        self.cuts += 1
        self.size, self.end_offset = position, offset
        self.index.cut(position)
        if self.doubt is not None:
            self.doubt.cut(len(self.index), position, offset)

    # Finding

    def boundary_within(self, begin: tuple[int, int], position_max: int, offset_max: int) -> tuple[int, int]:
        """The last (position, offset) at which a batch starts or the segment ends, and that is behind neither limit.

        `begin` is a known one at or before the answer, from which the walk starts unless the index knows better.
        """
        if position_max >= self.size and offset_max >= self.end_offset:
            return self.size, self.end_offset
        position, offset = begin
        entry = self.index.last_within(position_max, offset_max)
        if self.index.positions[entry] > position:
            position, offset = self.index.positions[entry], self.index.offsets[entry]
        return self._walk(position, offset, position_max, offset_max)

    def _walk(self, position: int, offset: int, position_max: int, offset_max: int) -> tuple[int, int]:
        """Go from batch to batch while the limits allow.

        All that start before the next entry have their headers in one small read. Only batches within the limits are
        looked at: what lies behind may be in doubt.
        """
        while position < position_max and offset < offset_max:
            data = self._read_some(min(self.interval_bytes + HEADER_BYTES, self.size - position), position)
            at, last = 0, min(len(data) - HEADER_BYTES, position_max - position - 1)
            while at <= last and offset < offset_max:
                length, last_offset_delta = EXTENT.unpack_from(data, at)
                behind = at + length + LENGTH_END
                if position + behind > position_max or offset + last_offset_delta >= offset_max:
                    return position + at, offset
                at, offset = behind, offset + last_offset_delta + 1
            position += at
        return position, offset

    def batch_end(self, position: int) -> tuple[int, int]:
        """The (position, offset) behind the batch that starts at `position`."""
        header = parse_header(self.read(HEADER_BYTES, position))
        return position + header.size, header.base_offset + header.records_count

    def read(self, size: int, position: int) -> bytes:
        """Exactly these bytes; LogDiskFailed when the disk fails or the file is shorter than it was."""
        data = self._read_some(size, position)
        if len(data) != size:
            raise LogDiskFailed(f"{self.path.name} gave {len(data)} of {size} bytes at {position}")
        return data

    def _read_some(self, size: int, position: int) -> bytes:
        """At least one header; fewer bytes than asked if the file is shorter than it was."""
        try:
            data = self.files.pread(self.handle, size, position)
        except OSError as error:
            raise LogDiskFailed(f"cannot read {self.path.name} at {position}: {error}") from error
        if len(data) < HEADER_BYTES:
            raise LogDiskFailed(f"{self.path.name} gave {len(data)} of {size} bytes at {position}")
        return data

    # Opening and closing

    def lend(self) -> LentHandle:
        """A handle that outlives the segment. OSError where there is none left."""
        handle = None if self.lent is None else self.lent()
        if handle is None:
            handle = LentHandle(self.files, self.files.duplicate(self.handle))
            self.lent = ref(handle)
        return handle

    def open_sealed(self) -> None:
        """Open for reading and load the index."""
        try:
            loaded = load_index(self.files, self.index_path, self.interval_bytes)
            if loaded is None or loaded[1] != self.extent:
                raise LogDiskFailed(f"{self.index_path.name} is not the index that was written")
            self.handle = self.files.open_read(self.path)
        except OSError as error:
            raise LogDiskFailed(f"cannot open {self.path.name}: {error}") from error
        self.index = loaded[0]

    def close(self) -> None:
        """Give the handle and the index's memory back."""
        if self.handle >= 0:
            handle, self.handle = self.handle, -1
            self.index = Index(self.interval_bytes)
            self.files.close(handle)

    def open_for_appending(self) -> None:
        """Make the segment one that grows; it may be open for reading already."""
        handle = self.files.open_append(self.path)
        if self.handle >= 0:
            self.files.close(self.handle)
        self.handle = handle

    def save_index(self, *, durable: bool) -> None:
        """Write the index file."""
        replace_file(self.files, self.index_path, self.index.encode(self.extent), durable=durable)

    def remove(self) -> None:
        """Delete the files and close; the segment's own first, because an index alone means nothing."""
        self.files.unlink(self.path)
        if self.index_path.name in self.files.list_names(self.path.parent):
            self.files.unlink(self.index_path)
        self.close()


def load_index(files: Files, path: Path, interval_bytes: int) -> tuple[Index, Extent] | None:
    """The index in the file, or None when there is none or it is not whole."""
    data = read_file(files, path)
    return None if data is None else decode_index(data, interval_bytes)


def new_segment(files: Files, directory: Path, base_offset: int, interval_bytes: int) -> Segment:
    """An empty segment, open for appending."""
    segment = Segment(files, directory, Extent(base_offset, base_offset, 0, NO_TIMESTAMP), interval_bytes)
    segment.open_for_appending()
    segment.idempotent = False
    return segment


class OpenSegments:
    """The sealed segments that are open in this process, over all logs: the longest unused is closed beyond the bound.

    It bounds file handles and the memory of indexes alike, since a sealed segment has either both or neither.
    """

    def __init__(self, segments_max: int = 32) -> None:
        self._segments_max = segments_max
        self._in_use_order: OrderedDict[Segment, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._in_use_order)

    def __contains__(self, segment: Segment) -> bool:
        return segment in self._in_use_order

    def use(self, segment: Segment) -> None:
        """Open the segment if it is closed, and count it as used just now."""
        if segment in self._in_use_order:
            self._in_use_order.move_to_end(segment)
            return
        if segment.handle >= 0:
            return  # its index could not be saved, so closing it would lose that
        segment.open_sealed()
        self.adopt(segment)

    def adopt(self, segment: Segment) -> None:
        """Take over a segment that is open and has been sealed."""
        self._in_use_order[segment] = None
        if len(self._in_use_order) > self._segments_max:
            self._in_use_order.popitem(last=False)[0].close()

    def forget(self, segment: Segment) -> None:
        """Give the segment, open or closed, back to its log."""
        self._in_use_order.pop(segment, None)
