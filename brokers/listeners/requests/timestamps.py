"""Which record is the first that is not older than a time: the log knows the batch, and its records are looked at here.

A client may ask for many partitions, and a batch may hold a million records, so others have their turn in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from brokers.slices import SLICE_RECORDS, Slices
from brokers.wire.batch import BatchHeader, BatchInvalid, parse_header, timestamps_of, unpacked

if TYPE_CHECKING:
    from brokers.log.log import Log

# Bytes of one unpacked batch. For a larger batch the answer is its beginning.
_UNPACKED_BYTES_MAX: Final = 64 * 1024 * 1024


async def first_not_older(slices: Slices, log: Log, timestamp: int) -> tuple[int, int] | None:
    """(offset, timestamp); None where all records are older.

    The beginning of a batch that cannot be taken apart, which a broker does not insist on, and its largest timestamp.
    Raises `LogError`.
    """
    async with slices:
        await slices.turn()  # to open a segment may have taken as long as a slice
        batch = log.reader.batch_for_timestamp(timestamp)
        if batch is None:
            return None
        header = parse_header(batch)
        if header.appended_at:
            return header.base_offset, header.max_timestamp
        if header.base_timestamp >= timestamp:
            return header.base_offset, header.base_timestamp  # the first record's
        try:
            return await _within(slices, memoryview(batch), header, timestamp)
        except BatchInvalid:
            return header.base_offset, header.max_timestamp


async def _within(slices: Slices, batch: memoryview, header: BatchHeader, timestamp: int) -> tuple[int, int]:
    """Raises `BatchInvalid`."""
    body = await slices.unpack(unpacked, batch, header, max(_UNPACKED_BYTES_MAX, len(batch)))
    for number, found in enumerate(timestamps_of(header, body)):
        if found >= timestamp:
            return header.base_offset + number, found
        if not number % SLICE_RECORDS:
            await slices.turn()
    return header.base_offset, header.max_timestamp
