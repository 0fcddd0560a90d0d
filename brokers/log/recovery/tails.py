"""Bytes cut off a log are kept in a file of their own, unless they hold nothing of use."""

from __future__ import annotations

import struct
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from brokers.log.files import Files, short_write, sync_directory
from brokers.wire.batch import HEADER, HEADER_BYTES, LENGTH_END, MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK_BYTES: Final = 1024 * 1024
_OFFSET: Final = struct.Struct(">q")


def is_worthless(files: Files, handle: int, begin: int, end: int, offset: int) -> bool:
    """Whether these bytes are zeros alone, or the beginning of a batch for `offset` whose end was never written."""
    head = files.pread(handle, min(HEADER_BYTES, end - begin), begin)
    if head[: _OFFSET.size] == _OFFSET.pack(offset)[: len(head)]:
        if len(head) < HEADER_BYTES:
            return True
        fields = HEADER.unpack(head)
        if fields[3] == MAGIC and fields[1] + LENGTH_END > end - begin:
            return True
    return not any(chunk.strip(b"\0") for chunk in _chunks(files, handle, begin, end))


def copy_aside(files: Files, handle: int, begin: int, end: int, path: Path, *, durable: bool) -> None:
    """Copy the bytes to a new file; OSError when the disk refuses, the file is removed then."""
    to = files.open_replace(path)
    try:
        for chunk in _chunks(files, handle, begin, end):
            if (written := files.writev(to, [chunk])) != len(chunk):
                raise short_write(written, len(chunk), path)
        if durable:
            files.fsync(to)
    except OSError:
        files.unlink(path)
        raise
    finally:
        files.close(to)
    if durable:
        sync_directory(files, path.parent)


def unused_path(files: Files, directory: Path, offset: int) -> Path:
    """Where what was cut at this offset can be kept."""
    taken = set(files.list_names(directory))
    names = (f"{offset:020}{f'-{number}' if number else ''}.cut" for number in count())
    return directory / next(name for name in names if name not in taken)


def _chunks(files: Files, handle: int, begin: int, end: int) -> Iterator[bytes]:
    while begin < end:
        chunk = files.pread(handle, min(_CHUNK_BYTES, end - begin), begin)
        if not chunk:
            return
        yield chunk
        begin += len(chunk)
