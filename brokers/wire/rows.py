"""Produce requests in a row, each as long as the next, that differ in nothing but what their batches hold.

So are the requests of a client that sends one small message each. Taken apart one by one, each costs more than all that
is done with it; here they are taken apart together, column by column, in C (`make bench`, 8 B x 1). Where one of them
does not fit, or is not as it must be, there is no row: whoever looks at them one by one finds out what is wrong.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from brokers.wire.batch import (
    CRC_AT,
    CRC_BEGIN,
    EPOCH_AT,
    HEADER_BYTES,
    NO_PRODUCER,
    BatchError,
    BatchHeader,
    check_produced,
)

if TYPE_CHECKING:
    from brokers.wire.apis.produce import Template

_EPOCH: Final = Struct(">i")
# Where these lie in a batch: see `HEADER`.
_ATTRIBUTES_AT: Final = CRC_BEGIN
_MAX_TIMESTAMP_AT: Final = 35
_PRODUCER_AT: Final = 43
# Parts of each frame, in columns. Size and head, key to magic, attributes to last offset delta, and what follows the
# timestamps are the same in all of a row.
_ALIKE: Final = (0, 2, 4, 6)
_CORRELATION_ID, _CRC, _MAX_TIMESTAMP = 1, 3, 5


class Row(NamedTuple):
    """The batches lie in `span`, the first at its beginning and `stride` apart. `header` is the first one's; the
    others differ only in CRC and timestamps. `timestamps` has the largest one of each batch."""

    correlation_ids: tuple[int, ...]
    span: memoryview
    stride: int
    header: BatchHeader
    timestamps: tuple[int, ...]

    def batches(self) -> list[memoryview]:
        span, size = self.span, self.header.size
        return [span[begin : begin + size] for begin in range(0, len(span), self.stride)]

    def place(self, offsets: range, leader_epoch: int) -> None:
        """Write base offsets and the leader epoch into the batches where they lie."""
        count = len(offsets)
        set_columns(self.span, 0, self.stride, Struct(f">{count}q").pack(*offsets), 8)
        set_columns(self.span, EPOCH_AT, self.stride, _EPOCH.pack(leader_epoch) * count, 4)


def set_columns(span: memoryview | bytearray, at: int, stride: int, values: bytes, size: int) -> None:
    """Write values of `size` bytes each to `at`, and on, a `stride` apart."""
    for byte in range(size):
        span[at + byte :: stride] = values[byte::size]


class RowLayout:
    """How requests of one template lie in a row, when each has so many bytes behind its size."""

    def __init__(self, template: Template, frame_bytes: int) -> None:
        self.frame_bytes = frame_bytes
        self._begins = Struct(">i").pack(frame_bytes) + template.head
        self._key = template.key
        self._batch_bytes = frame_bytes - template.records_at
        if self._batch_bytes >= HEADER_BYTES:
            key_to_magic = len(template.key) + 4 + CRC_AT
            attributes = _MAX_TIMESTAMP_AT - 8 - _ATTRIBUTES_AT
            behind = HEADER_BYTES - _PRODUCER_AT
            rest = self._batch_bytes - HEADER_BYTES
            self._columns = Struct(f">8si{key_to_magic}sI{attributes}s8xq{behind}s{rest}x")

    def read(self, view: memoryview, size_at: int, count: int, bytes_max: int) -> Row | None:
        """The `count` requests whose first begins, with its size, at `size_at`; None where they are no row."""
        size = self._batch_bytes
        if not HEADER_BYTES <= size <= bytes_max:
            return None
        stride = self._columns.size
        end = size_at + count * stride
        columns = list(zip(*self._columns.iter_unpack(view[size_at:end]), strict=True))
        if columns[0][0] != self._begins or not columns[2][0].startswith(self._key):
            return None
        if any(columns[number].count(columns[number][0]) != count for number in _ALIKE):
            return None
        span = view[size_at + stride - size : end]
        try:
            header = check_produced(span[:size], bytes_max)
        except BatchError:
            return None
        if header.producer_id != NO_PRODUCER:
            return None  # what was sent before has to be told from what is new, batch by batch
        bodies = range(CRC_BEGIN, len(span), stride)
        if columns[_CRC] != tuple([crc32c(span[begin : begin + size - CRC_BEGIN]) for begin in bodies]):
            return None
        return Row(columns[_CORRELATION_ID], span, stride, header, columns[_MAX_TIMESTAMP])
