"""The one seam through which the log reaches the disk, so that a test can break any call of it.

Calls are single system calls: a write may be short and says so by its count, an error is an OSError. The callers
decide what to do about either. Handles are file descriptors; files are opened for appending, so a write lands at the
file's end even after the file was cut.
"""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

Buffer = bytes | bytearray | memoryview

_APPEND: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_CLOEXEC
_UPDATE: Final = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
_REPLACE: Final = os.O_WRONLY | os.O_TRUNC | os.O_CREAT | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Files(Protocol):
    """All that the log asks of a file system; every method may raise OSError."""

    def open_append(self, path: Path) -> int:
        """A handle for reading and appending; the file is made if it is missing."""

    def open_read(self, path: Path) -> int:
        """A handle for reading alone, which a read-only file system grants too."""

    def open_replace(self, path: Path) -> int:
        """A handle for writing a file from its beginning; its content is gone."""

    def open_update(self, path: Path) -> int:
        """A handle for writing at any position; the file is made if it is missing."""

    def open_directory(self, path: Path) -> int:
        """A handle of the directory, to sync the names in it."""

    def close(self, handle: int) -> None:
        """Give the handle back."""

    def duplicate(self, handle: int) -> int:
        """A second handle to the same open file, which outlives the first."""

    def writev(self, handle: int, buffers: Sequence[Buffer]) -> int:
        """Append the buffers, 1,024 at most; the count of bytes written may be less than asked."""

    def pwrite(self, handle: int, data: bytes, position: int) -> int:
        """Write over what is at the position; the count of bytes written may be less than asked."""

    def pread(self, handle: int, bytes_max: int, position: int) -> bytes:
        """Bytes at the position, fewer than asked only at the file's end."""

    def send(self, socket: int, handle: int, position: int, bytes_max: int) -> int:
        """Give bytes at the position to a socket, and return how many it took; BlockingIOError when it is full."""

    def fdatasync(self, handle: int) -> None:
        """Return once the file's data and size are on the disk."""

    def fsync(self, handle: int) -> None:
        """Return once the file or directory is on the disk."""

    def truncate(self, handle: int, size: int) -> None:
        """Cut the file to `size` bytes."""

    def size(self, handle: int) -> int:
        """The file's size in bytes."""

    def rename(self, old: Path, new: Path) -> None:
        """Move a file over another in one step."""

    def unlink(self, path: Path) -> None:
        """Remove a file."""

    def list_names(self, path: Path) -> list[str]:
        """Names in a directory, in any order."""

    def make_directory(self, path: Path) -> None:
        """Make a directory and its parents; no error when it is there."""

    def remove_directory(self, path: Path) -> None:
        """Remove an empty directory."""


class OsFiles:
    """The real disk. Bare builtins where the signature allows it: the hot path calls them a million times a second."""

    close = staticmethod(os.close)
    duplicate = staticmethod(os.dup)
    writev = staticmethod(os.writev)
    pwrite = staticmethod(os.pwrite)
    pread = staticmethod(os.pread)
    send = staticmethod(os.sendfile)
    fdatasync = staticmethod(os.fdatasync)
    fsync = staticmethod(os.fsync)
    truncate = staticmethod(os.ftruncate)
    rename = staticmethod(os.rename)
    unlink = staticmethod(os.unlink)
    list_names = staticmethod(os.listdir)
    remove_directory = staticmethod(os.rmdir)

    @staticmethod
    def open_append(path: Path) -> int:
        """See Files."""
        return os.open(path, _APPEND, 0o644)

    @staticmethod
    def open_read(path: Path) -> int:
        """See Files."""
        return os.open(path, _READ)

    @staticmethod
    def open_replace(path: Path) -> int:
        """See Files."""
        return os.open(path, _REPLACE, 0o644)

    @staticmethod
    def open_update(path: Path) -> int:
        """See Files."""
        return os.open(path, _UPDATE, 0o644)

    @staticmethod
    def open_directory(path: Path) -> int:
        """See Files."""
        return os.open(path, _DIRECTORY)

    @staticmethod
    def size(handle: int) -> int:
        """See Files."""
        return os.fstat(handle).st_size

    @staticmethod
    def make_directory(path: Path) -> None:
        """See Files."""
        path.mkdir(parents=True, exist_ok=True)


OS_FILES: Final[Files] = OsFiles()


_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN})
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def is_shortage(error: OSError) -> bool:
    """Whether the process or the machine lacks something for a moment, and the disk was not even asked."""
    return error.errno in _SHORTAGES


def is_passing(error: OSError) -> bool:
    """Whether the same call may succeed later without anybody repairing the disk: a shortage, or a full disk."""
    return error.errno in _SHORTAGES or error.errno in _FULL


def is_read_only(error: OSError) -> bool:
    """Whether the file system takes no change at all, as after an error of its disk; what is there can be read."""
    return error.errno == errno.EROFS


def short_write(written: int, size: int, path: Path) -> OSError:
    """The error for a write that was cut short without one, as a full disk does it."""
    return OSError(errno.ENOSPC, f"a short write, {written} of {size} bytes of {path.name}, as a full disk gives")


def sync_directory(files: Files, path: Path) -> None:
    """Make the names in `path` durable: files that were made, renamed or removed in it."""
    handle = files.open_directory(path)
    try:
        files.fsync(handle)
    finally:
        files.close(handle)


def replace_file(files: Files, path: Path, data: bytes, *, durable: bool) -> None:
    """Put `data` in place of the file in one step: a reader finds the old content or the new, never a mixture.

    OSError when the disk refuses, a short write included; the old content then stays.
    """
    fresh = path.with_suffix(path.suffix + ".new")
    write_file(files, fresh, data, durable=durable)
    files.rename(fresh, path)
    if durable:
        sync_directory(files, path.parent)


def write_file(files: Files, path: Path, data: bytes, *, durable: bool) -> None:
    """Make a file of `data`. OSError when the disk refuses, a short write included; it may hold a part then."""
    handle = files.open_replace(path)
    try:
        written = files.writev(handle, [data])
        if written != len(data):
            raise short_write(written, len(data), path)
        if durable:
            files.fsync(handle)
    finally:
        files.close(handle)


def read_file(files: Files, path: Path) -> bytes | None:
    """The whole content, or None when there is no such file."""
    try:
        handle = files.open_read(path)
    except FileNotFoundError:
        return None
    try:
        return files.pread(handle, files.size(handle), 0)
    finally:
        files.close(handle)
