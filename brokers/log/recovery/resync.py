"""Finding the next good batch behind bytes that are none.

A write that was torn by a crash has nothing good behind it; damage in the middle of a file has. Which of the two it is
decides whether a log ends there. So what follows is looked for: first where the broken batch's own length says that the
next one begins, then at every byte, since the length may be what is broken.

A batch's CRC vouches for its content and not for its offset, and a payload may hold whole batches itself. So a batch is
taken for the log's own only if something beside it says the same of its offset: the number of records of the broken
one before it (several broken ones vouch for each other as long as their headers follow each other), the batch behind
it, or the offset at which the file is known to end. Where the broken bytes look like a batch whose end was never
written, only the first of these counts.
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
    from brokers.log.recovery.scan import EpochSpan

_CHUNK_BYTES: Final = 1024 * 1024
_MAGIC_END: Final = 17
_OFFSET: Final = struct.Struct(">q")


def next_good(
    files: Files, handle: int, begin: tuple[int, int], limit: tuple[int, int], known_end: int, epoch_span: EpochSpan
) -> tuple[int, int] | None:
    """(position, offset) of the next good batch behind `begin`, where none is; None when there is none before `limit`.

    `limit` is the file's size and the offset that no batch goes beyond; `known_end` is an offset at which the file may
    end, for all that is known.
    """
    position, offset = begin
    end, offset_max = limit
    broken = _header_at(files, handle, position, end)
    if broken is None:
        return None
    counted = _ends_of(offset, broken)
    torn = _looks_torn(broken, offset, end - position)

    def accepted(at: int) -> int | None:
        """The offset of a good batch here that is the log's own."""
        header = good_at(files, handle, at, end)
        if header is None or not offset < header.base_offset <= offset_max - header.records_count:
            return None
        behind, next_offset = at + header.size, header.base_offset + header.records_count
        if behind == end:
            confirmed = header.base_offset in counted or (next_offset == known_end and not torn)
        else:
            goes_on = files.pread(handle, _OFFSET.size, behind) == _OFFSET.pack(next_offset)
            confirmed = header.base_offset in counted or (goes_on and not torn)
        fits = confirmed and epoch_span(header.base_offset, header.leader_epoch)[0] == header.leader_epoch
        return header.base_offset if fits else None

    at = position
    header: BatchHeader | None = broken
    while header is not None and header.length >= LENGTH_MIN:
        at += header.size
        if (found := accepted(at)) is not None:
            return at, found
        header = _header_at(files, handle, at, end)
        if header is None or header.base_offset not in counted:
            break
        counted |= _ends_of(header.base_offset, header)
    for at in _candidates(files, handle, position + 1, end, (offset, offset_max)):
        if (found := accepted(at)) is not None:
            return at, found
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


def _ends_of(offset: int, header: BatchHeader) -> set[int]:
    """Where the batch ends that begins at this offset, by each of the fields that say so."""
    return {offset + header.records_count, offset + header.last_offset_delta + 1}


def _is_sound(header: BatchHeader) -> bool:
    counted = header.records_count >= 1 and header.last_offset_delta == header.records_count - 1
    return header.magic == MAGIC and counted and header.length >= LENGTH_MIN


def _looks_torn(header: BatchHeader, offset: int, bytes_left: int) -> bool:
    """Whether this is how a batch begins whose end was never written."""
    return _is_sound(header) and header.base_offset == offset and header.size > bytes_left


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
