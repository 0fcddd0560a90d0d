"""Stored batches as the records of one answer to a fetch, within what an answer may take.

A batch is stored as it came, and its size says nothing of what is inside: 2 KB may unpack to 60 MB, or to a million
empty records, and each takes more memory than its seven bytes. So the unpacked size counts: its bytes, and
its records with their headers. An answer ends where either bound does, in the middle of a batch of many records if need
be, and the reader asks for the next offset as ever. Only a first batch that is beyond the bounds by itself is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from brokers.rpc.answers import ITEMS_MAX, record_of
from brokers.slices import SLICE_RECORDS, Slices
from brokers.wire.batch import BATCH_RECORDS_MAX, BatchHeader, BatchInvalid, parse_header, records_of, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from brokers.rpc import brokerlab_pb2 as pb

UNPACKED_BYTES_MAX: Final = 64 * 1024 * 1024
# Bytes that offsets, times, tags and lengths add to so many (40 a record, 18 a header), and one record more.
OVERHEAD_BYTES_MAX: Final = 8 * 1024 * 1024
MESSAGE_BYTES_MAX: Final = 2**31 - 1


def unpacked_bytes_max(message_bytes_max: int) -> int:
    """The largest unpacked size of an answer's first batch: at least what may be stored without being packed."""
    return max(UNPACKED_BYTES_MAX, message_bytes_max)


def answer_bytes_max(message_bytes_max: int) -> int:
    """The largest size of an answer of `Unpacking`, as a message of the service."""
    return min(unpacked_bytes_max(message_bytes_max) + OVERHEAD_BYTES_MAX, MESSAGE_BYTES_MAX)


class Unpacking:
    """The records of an answer from `offset` on; `stored_bytes` are those of the batches that they come from.

    `bytes_max` bounds the unpacked bytes; the first batch has `first_bytes_max`, so that a reader always advances.
    """

    def __init__(self, offset: int, bytes_max: int, first_bytes_max: int) -> None:
        self.records: list[pb.Record] = []
        self.stored_bytes = 0
        self._offset = offset
        self._bytes_left = bytes_max
        self._first_bytes_max = first_bytes_max
        self._items_left = ITEMS_MAX

    async def take(self, data: bytes) -> None:
        """Add as much as may be of consecutive batches; other requests have their turn in between.

        Raises `BatchInvalid` where nothing can be answered because of the first of them: it is beyond the bounds, or
        nonsense. Behind others it ends the answer, and is the first of the next.
        """
        for batch in _batches(data):
            header = parse_header(batch)
            try:
                await self._add(batch, header)
            except BatchInvalid as error:
                if self.records:
                    return
                raise BatchInvalid(f"{error}; the next batch begins at offset {_end_offset(header)}") from error
            if self._bytes_left <= 0 or self._items_left <= 0:
                return

    async def _add(self, batch: memoryview, header: BatchHeader) -> None:
        """Add what there is room for of one batch. Raises `BatchInvalid`, and then none of it is in the answer."""
        bytes_max = self._bytes_left if self.records else self._first_bytes_max
        if header.records_count > BATCH_RECORDS_MAX:
            raise BatchInvalid(
                f"the batch at offset {header.base_offset} has {header.records_count} records, and at most "
                f"{BATCH_RECORDS_MAX} can be fetched here"
            )
        body = await Slices.unpack(unpacked, batch, header, bytes_max)
        if len(body) > bytes_max:  # one that is not packed
            raise BatchInvalid(
                f"the batch at offset {header.base_offset} holds {len(body)} bytes, and at most {bytes_max} can be "
                "fetched here"
            )
        found: list[pb.Record] = []
        items_left = self._items_left
        for number, record in enumerate(records_of(header, body, self._offset - header.base_offset), start=1):
            if not number % SLICE_RECORDS:
                await Slices.turn()
            items_left -= 1 + len(record.headers)
            if items_left < 0 and (found or self.records):
                break
            found.append(record_of(record))
        self.records += found
        self.stored_bytes += len(batch) if found else 0
        self._items_left = items_left
        self._bytes_left -= len(body)


def _batches(data: bytes) -> Iterator[memoryview]:
    """The batches that lie one behind the other in an answer of the log."""
    view, position = memoryview(data), 0
    while position < len(view):
        size = parse_header(view, position).size
        yield view[position : position + size]
        position += size


def _end_offset(header: BatchHeader) -> int:
    return header.base_offset + header.last_offset_delta + 1
