"""The offset before which everything was synced, in a record of a few bytes that is overwritten after each sync.

It is written once a sync has succeeded and before anybody is told of it. The record itself is not synced then: a killed
process leaves exactly what it wrote, a power cut may leave an older one. Both are true, for what was synced once stays
so; an older one only makes the next start promise less than it could. Where the offset falls, before a log is cut, the
record is synced first: there an older one would promise what is not there.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from crc32c import crc32c

from brokers.log.epochs import OFFSET_BOUND
from brokers.log.files import Files, read_file, short_write

if TYPE_CHECKING:
    from pathlib import Path

SYNCED_NAME: Final = "synced"
_FORMAT: Final = b"BLSYN1\n\0"
_BODY: Final = struct.Struct(">8sq")
_CRC: Final = struct.Struct(">I")


def encode_synced(offset: int) -> bytes:
    """The file's bytes."""
    body = _BODY.pack(_FORMAT, offset)
    return body + _CRC.pack(crc32c(body))


def decode_synced(data: bytes) -> int | None:
    """The offset, or None when the bytes are not what `encode_synced` made."""
    if len(data) != _BODY.size + _CRC.size or _CRC.unpack_from(data, _BODY.size)[0] != crc32c(data[: _BODY.size]):
        return None
    form, offset = _BODY.unpack_from(data)
    return offset if form == _FORMAT and 0 <= offset <= OFFSET_BOUND else None


class SyncedRecord:
    """The file of one log. It is opened when it is needed first, and stays open until `close`."""

    __slots__ = ("_files", "_handle", "_path", "offset")

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._path = directory / SYNCED_NAME
        self._handle = -1
        self.offset = 0  # as it stands in the file

    def read(self) -> bool:
        """Set `offset` from the file; False when there is one that cannot be believed. OSError.

        Nothing but zeros is no record: a power cut leaves that of one that was never written back.
        """
        data = read_file(self._files, self._path) or b""
        found = decode_synced(data)
        self.offset = found or 0
        return found is not None or not data.strip(b"\0")

    def open(self) -> None:
        """Be ready for `write`; OSError."""
        if self._handle < 0:
            self._handle = self._files.open_update(self._path)

    def write(self, offset: int) -> None:
        """Note it; OSError."""
        self.open()
        data = encode_synced(offset)
        written = self._files.pwrite(self._handle, data, 0)
        if written != len(data):
            raise short_write(written, len(data), self._path)
        self.offset = offset

    def lower(self, offset: int, *, durable: bool) -> None:
        """Promise no more than this, before what lies behind is cut; OSError."""
        if offset < self.offset:
            self.write(offset)
            if durable:
                self._files.fdatasync(self._handle)

    def close(self) -> None:
        if self._handle >= 0:
            handle, self._handle = self._handle, -1
            self._files.close(handle)
