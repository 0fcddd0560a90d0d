"""A durable list of records in one file: what a broker lends its coordinator for topics, offsets and tables.

Each record is its length and CRC-32C, then its bytes. A crash can tear only the last one; reading stops there, and the
next start cuts it off and says so, so that nothing is ever appended behind something that cannot be read. A last record
that is broken and as long as it says may have been torn or damaged: it is cut off too, and kept in a file. A record
that is broken with whole ones behind it was not torn but damaged: those are not thrown away, the journal is refused.
Where the next one begins cannot be asked of the broken one, whose length may be what is broken: it is looked for at
every byte.

A disk that refuses, because it is full or cannot be written for a while, costs what was to be written and nothing else:
the file is cut back to its last whole record, before anything more is appended at the latest, and the next record is
tried again. Only a sync that failed ends writing until the next start, for nobody can tell what it left behind.
"""

from __future__ import annotations

import re
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from crc32c import crc32c

from brokers.log.files import (
    OS_FILES,
    Files,
    is_read_only,
    read_file,
    replace_file,
    short_write,
    sync_directory,
    write_file,
)
from brokers.notices import Notices
from coordinators.errors import JournalFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_HEAD: Final = struct.Struct(">II")
RECORD_BYTES_MAX: Final = 16 * 1024 * 1024
# Where a record of 1 to RECORD_BYTES_MAX bytes may begin. Records are JSON, in which no byte is zero, so hardly any
# place inside one is looked at closer.
_LENGTH: Final = re.compile(rb"(?s)(?=\x00(?:[^\x00]..|.[^\x00].|..[^\x00])|\x01\x00\x00\x00)")


class FileJournal:
    """One journal. `durable` syncs what is written to the disk itself before `append` returns.

    Opening it raises `JournalFailed` where it is damaged, and OSError where the disk refuses. On a read-only file
    system it can be read, and takes no records.
    """

    def __init__(self, path: Path, *, durable: bool, files: Files = OS_FILES, notices: Notices | None = None) -> None:
        self._path = path
        self._durable = durable
        self._files = files
        self._notices = notices or Notices()
        self._over: str | None = None
        files.make_directory(path.parent)
        self._records = self._recovered()

    def _recovered(self) -> list[bytes]:
        """The records that are whole; what lies behind them is cut off."""
        content = read_file(self._files, self._path) or b""
        records, end = _parsed(content)
        if _is_damaged(content, end):
            raise JournalFailed(
                f"{self._path} is damaged at byte {end}: restore it, or move it away to start without what it holds"
            )
        self._size, self._torn = end, end < len(content)
        self._handle = self._opened()
        if self._handle is not None:
            if self._torn:
                self._tell_torn(content[end:])
            self._cut_back(self._handle)
            if self._durable:
                sync_directory(self._files, self._path.parent)
        return records

    def _tell_torn(self, tail: bytes) -> None:
        """Say what is cut off behind the last whole record, after what may be of use is kept. OSError."""
        kept = "the beginning of one"
        if not tail.strip(b"\0"):
            kept = "zeros"
        elif _is_as_long_as_it_says(tail):
            aside = self._path.with_name(f"{self._path.name}.{self._size}.cut")
            replace_file(self._files, aside, tail, durable=self._durable)
            kept = f"kept in {aside.name}; a change that was made last may be missing"
        line = f"{self._path}: {len(tail)} bytes behind the last whole record were cut off ({kept})"
        self._notices.tell(line, journal_cut_bytes=len(tail))

    def _opened(self) -> int | None:
        """The handle for appending; None on a read-only file system, where a torn tail stays and nobody appends."""
        try:
            return self._files.open_append(self._path)
        except OSError as error:
            if not is_read_only(error):
                raise
            return None

    def replay(self) -> Iterator[bytes]:
        """All records, oldest first. Once: they are not kept in memory after it."""
        records, self._records = self._records, []
        return iter(records)

    def append(self, *records: bytes) -> None:
        """All of them or none. Raises `JournalFailed` with the reason; what was there before stays."""
        if self._over is not None:
            raise JournalFailed(self._over)
        framed = b"".join(map(_framed, records))
        try:
            if self._handle is None:
                self._handle = self._files.open_append(self._path)
            self._cut_back(self._handle)
            self._write(self._handle, framed)
        except OSError as error:
            raise JournalFailed(self._refused("write", error)) from error
        self._size += len(framed)

    def _write(self, handle: int, framed: bytes) -> None:
        self._torn = True  # until it is whole
        written = self._files.writev(handle, [framed])
        if written != len(framed):
            raise short_write(written, len(framed), self._path)
        if self._durable:
            try:
                self._files.fdatasync(handle)
            except OSError as error:  # a second one would prove nothing: the pages that were lost may count as clean
                self._over = f"cannot write {self._path.name}: {error}"
                raise
        self._torn = False

    def _cut_back(self, handle: int) -> None:
        """Cut off what an earlier write left behind the last whole record: nothing is appended behind it."""
        if self._torn:
            self._files.truncate(handle, self._size)
            self._torn = False

    def _refused(self, what: str, error: OSError) -> str:
        """Why, when what can be undone is undone."""
        reason = f"cannot {what} {self._path.name}: {error}"
        try:
            if self._handle is not None:
                self._cut_back(self._handle)
        except OSError as other:  # the torn record's CRC keeps it from being read; it is cut off before the next one
            reason = f"{reason}; nor can it be cut back: {other}"
        if self._over is None:
            self._notices.count(journal_records_refused=1)
        else:
            self._notices.tell_once(f"{self._path}: {reason}", journals_closed_for_writing=1)
        return reason

    def replace(self, records: Iterable[bytes]) -> None:
        """Put `records` in the place of all that is there, in one step. If it raises `JournalFailed`, those stay."""
        content = b"".join(map(_framed, records))
        folder: int | None = None  # opened first: once the new file has the name, nothing can be undone
        try:
            folder = self._files.open_directory(self._path.parent) if self._durable else None
            handle = self._fresh(content)
        except OSError as error:
            self._close(folder)
            self._notices.count(journal_records_refused=1)
            raise JournalFailed(f"cannot rewrite {self._path.name}: {error}") from error
        self._close(self._handle)
        self._handle, self._size, self._torn = handle, len(content), False
        try:
            if folder is not None:
                self._files.fsync(folder)
        except OSError as error:  # which of the two files a crash leaves is open: none may be appended to
            self._over = f"cannot rewrite {self._path.name}: {error}"
            self._notices.tell_once(f"{self._path}: {self._over}", journals_closed_for_writing=1)
            raise JournalFailed(self._over) from error
        finally:
            self._close(folder)

    def _fresh(self, content: bytes) -> int:
        """The handle of a file of that content, under the journal's name."""
        path = self._path.with_suffix(self._path.suffix + ".new")
        try:
            write_file(self._files, path, content, durable=self._durable)
            handle = self._files.open_append(path)
        except OSError:
            with suppress(OSError):  # it may hold the last room that there was
                self._files.unlink(path)
            raise
        try:
            self._files.rename(path, self._path)
        except OSError:
            self._files.close(handle)
            raise
        return handle

    def close(self) -> None:
        """Records are refused from now on: the handle's number may be another file's by then."""
        self._close(self._handle)
        self._handle, self._over = None, self._over or f"{self._path.name} is closed"

    def _close(self, handle: int | None) -> None:
        if handle is not None:
            self._files.close(handle)


def _framed(record: bytes) -> bytes:
    assert 1 <= len(record) <= RECORD_BYTES_MAX, "a journal record is a row, not a file"
    return _HEAD.pack(len(record), crc32c(record)) + record


def _parsed(content: bytes) -> tuple[list[bytes], int]:
    """The whole records from the beginning, and where they end."""
    records, position = [], 0
    while (record := _next_record(content, position)) is not None:
        records.append(record)
        position += _HEAD.size + len(record)
    return records, position


def _next_record(content: bytes, position: int) -> bytes | None:
    """The whole record at `position`, or None. An empty one is none: after a power cut a file may end in zeros."""
    if position + _HEAD.size > len(content):
        return None
    length, crc = _HEAD.unpack_from(content, position)
    begin, end = position + _HEAD.size, position + _HEAD.size + length
    if not 1 <= length <= RECORD_BYTES_MAX or end > len(content) or crc32c(memoryview(content)[begin:end]) != crc:
        return None
    return content[begin:end]


def _is_as_long_as_it_says(tail: bytes) -> bool:
    """Whether a last record that is not good is all there, zeros in place of its end not counted."""
    if len(tail) < _HEAD.size:
        return False
    length, _ = _HEAD.unpack_from(tail)
    return bool(length < 1 or length > RECORD_BYTES_MAX or _HEAD.size + length <= len(tail.rstrip(b"\0")))


def _is_damaged(content: bytes, end: int) -> bool:
    """Whether what lies behind the last whole record is more than one torn record, and zeros in place of the rest."""
    last = len(content.rstrip(b"\0"))
    if last - end > _HEAD.size + RECORD_BYTES_MAX:
        return True
    begins = (found.start() for found in _LENGTH.finditer(content, end + 1, last + _HEAD.size))
    return any(_next_record(content, begin) is not None for begin in begins)
