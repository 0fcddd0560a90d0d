"""Batches that no library would make: whatever is said of their records, they are signed for it."""

from __future__ import annotations

from crc32c import crc32c

from brokers.wire.batch import CRC, CRC_AT, CRC_BEGIN, HEADER, HEADER_BYTES, LENGTH_END
from brokers.wire.primitives import append_signed

ABSENT = -1


def record(timestamp_delta: int = 0, offset_delta: int = 0, *, headers: int = 0, value: bytes | None = None) -> bytes:
    """One record without key, and with empty headers."""
    inner = bytearray(b"\0")
    for number in (timestamp_delta, offset_delta, ABSENT, ABSENT if value is None else len(value)):
        append_signed(inner, number)
    inner += value or b""
    append_signed(inner, headers)
    inner += b"\0\0" * headers
    whole = bytearray()
    append_signed(whole, len(inner))
    return bytes(whole + inner)


def empty_records(count: int) -> bytes:
    """Records that hold nothing, in their order."""
    return b"".join(record(offset_delta=number) for number in range(count))


def signed(
    body: bytes,
    count: int = 1,
    *,
    codec: int = 0,
    base_offset: int = 0,
    timestamp: int = 0,
    timestamp_max: int | None = None,
) -> bytearray:
    """A batch of `body`, already packed as `codec` says, that claims to hold `count` records."""
    batch = bytearray(HEADER_BYTES) + body
    latest = timestamp if timestamp_max is None else timestamp_max
    fields = (codec, count - 1, timestamp, latest, -1, -1, -1, count)
    HEADER.pack_into(batch, 0, base_offset, len(batch) - LENGTH_END, -1, 2, 0, *fields)
    CRC.pack_into(batch, CRC_AT, crc32c(memoryview(batch)[CRC_BEGIN:]))
    return batch
