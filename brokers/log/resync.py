"""Finding the next good batch behind bytes that are none.

A write that was torn by a crash has nothing good behind it; damage in the middle of a file has. Which of the two it is
decides whether a log ends there. So what follows is looked for: first where the broken batch's own length says that the
next one begins, then at every byte, since the length may be what is broken.

Payloads may hold whole batches themselves. One is not taken for the log's own unless its offsets and its epoch fit, and
what stands behind it goes on from it; where the broken bytes look like a batch whose end was never written, only if the
batches from it on lead to the very end of the file.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final

from crc32c import crc32c

from brokers.wire.batch import CRC_BEGIN, HEADER, HEADER_BYTES, LENGTH_MIN, MAGIC, BatchHeader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from brokers.log.files import Files
    from brokers.log.scan import EpochSpan

_CHUNK_BYTES: Final = 1024 * 1024
_MAGIC_END: Final = 17
_OFFSET: Final = struct.Struct(">q")


def next_good(
    files: Files, handle: int, begin: tuple[int, int], limit: tuple[int, int], epoch_span: EpochSpan
) -> tuple[int, int] | None:
    """(position, offset) of the next good batch behind `begin`, where none is; None when there is none before `limit`.

    `limit` is the file's size and the offset that no batch goes beyond.
    """
    position, offset = begin
    end, offset_max = limit
    broken = _header_at(files, handle, position, end)
    if broken is None:
        return None

    def fits(at: int) -> BatchHeader | None:
        header = good_at(files, handle, at, end)
        if header is None or not offset < header.base_offset <= offset_max - header.records_count:
            return None
        return header if epoch_span(header.base_offset, header.leader_epoch)[0] == header.leader_epoch else None

    if broken.length >= LENGTH_MIN and (following := fits(position + broken.size)) is not None:
        return position + broken.size, following.base_offset
    torn = _looks_torn(broken, offset, end - position)
    for at in _candidates(files, handle, position + 1, end, (offset, offset_max)):
        header = good_at(files, handle, at, end)
        if header is None or not (_leads_to(files, handle, at, end) if torn else _goes_on(files, handle, at, end)):
            continue
        if fits(at) is not None:
            return at, header.base_offset
    return None


def good_at(files: Files, handle: int, position: int, end: int) -> BatchHeader | None:
    """The header of the batch here if its format, length, count and CRC are right, whatever its offset and epoch."""
    header = _header_at(files, handle, position, end)
    if header is None or not _is_sound(header) or header.size > end - position:
        return None
    data = files.pread(handle, header.size, position)
    return header if len(data) == header.size and crc32c(data[CRC_BEGIN:]) == header.crc else None


def _header_at(files: Files, handle: int, position: int, end: int) -> BatchHeader | None:
    if end - position < HEADER_BYTES:
        return None
    data = files.pread(handle, HEADER_BYTES, position)
    return BatchHeader._make(HEADER.unpack(data)) if len(data) == HEADER_BYTES else None


def _is_sound(header: BatchHeader) -> bool:
    counted = header.records_count >= 1 and header.last_offset_delta == header.records_count - 1
    return header.magic == MAGIC and counted and header.length >= LENGTH_MIN


def _looks_torn(header: BatchHeader, offset: int, bytes_left: int) -> bool:
    """Whether this is how a batch begins whose end was never written."""
    return _is_sound(header) and header.base_offset == offset and header.size > bytes_left


def _goes_on(files: Files, handle: int, position: int, end: int) -> bool:
    """Whether behind the good batch here is the file's end or the offset that comes next."""
    header = _header_at(files, handle, position, end)
    assert header is not None, "it was good"
    behind = position + header.size
    expected = _OFFSET.pack(header.base_offset + header.records_count)
    found = files.pread(handle, min(len(expected), end - behind), behind)
    return expected.startswith(found)


def _leads_to(files: Files, handle: int, position: int, end: int) -> bool:
    """Whether good batches lead from here to the file's end."""
    expected: int | None = None
    while position < end:
        header = good_at(files, handle, position, end)
        if header is None or expected not in {None, header.base_offset}:
            return False
        position, expected = position + header.size, header.base_offset + header.records_count
    return True


def _candidates(files: Files, handle: int, begin: int, end: int, offsets: tuple[int, int]) -> Iterator[int]:
    """Positions at which something stands that may be the header of a batch with one of these offsets."""
    highs = {_OFFSET.pack(offset)[:4] for offset in (offsets[0], min(offsets[0] + (1 << 32), offsets[1]))}
    high = b"|".join(map(re.escape, highs))
    positive = rb"[\x00-\x7f].{3}"
    pattern = re.compile(rb"(?s)(?=(?:" + high + rb").{4}" + 2 * positive + re.escape(bytes([MAGIC])) + rb")")
    while end - begin >= HEADER_BYTES:
        chunk = files.pread(handle, min(_CHUNK_BYTES, end - begin), begin)
        if bytes([MAGIC]) in chunk:  # a stretch of zeros is passed over at once
            for found in pattern.finditer(chunk):
                yield begin + found.start()
        if len(chunk) < HEADER_BYTES or begin + len(chunk) >= end:
            return
        begin += len(chunk) - _MAGIC_END + 1
