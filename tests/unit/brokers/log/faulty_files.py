"""A disk that fails when it is told to, in the ways that real ones do."""

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from brokers.log.files import Buffer, OsFiles


class Death(BaseException):
    """The process ends here; nobody may catch it."""


@dataclass
class FaultyFiles(OsFiles):
    """The real disk until `fail`, `cut_short` or `die_in_write` is called; `heal` makes it real again."""

    errors: dict[str, int] = field(default_factory=dict)
    only: str = ""
    short_to: int | None = None
    dies: bool = False
    calls: list[str] = field(default_factory=list)

    def fail(self, *calls: str, error: int = errno.EIO, only: str = "") -> None:
        """Let these calls fail; those with a path only if its name contains `only`."""
        self.errors = dict.fromkeys(calls, error)
        self.only = only

    def heal(self) -> None:
        """Be a good disk again."""
        self.errors, self.short_to, self.dies = {}, None, False

    def _enter(self, call: str, path: Path | None = None) -> None:
        self.calls.append(call)
        if call in self.errors and (path is None or self.only in path.name):
            raise OSError(self.errors[call], os.strerror(self.errors[call]))

    def writev(self, handle: int, buffers: Sequence[Buffer]) -> int:  # type: ignore[override]
        """Write all, a part, nothing; or a part and then die."""
        if self.short_to is not None:
            written = os.write(handle, b"".join(buffers)[: self.short_to])
            if self.dies:
                raise Death
            return written
        self._enter("writev")
        return os.writev(handle, buffers)

    def pwrite(self, handle: int, data: bytes, position: int) -> int:  # type: ignore[override]
        self._enter("pwrite")
        return os.pwrite(handle, data, position)

    def pread(self, handle: int, bytes_max: int, position: int) -> bytes:
        self._enter("pread")
        return os.pread(handle, bytes_max, position)

    def send(self, socket: int, handle: int, position: int, bytes_max: int) -> int:  # type: ignore[override]
        self._enter("send")
        return os.sendfile(socket, handle, position, bytes_max)

    def fdatasync(self, handle: int) -> None:  # type: ignore[override]
        self._enter("fdatasync")
        os.fdatasync(handle)

    def fsync(self, handle: int) -> None:  # type: ignore[override]
        self._enter("fsync")
        os.fsync(handle)

    def truncate(self, handle: int, size: int) -> None:
        self._enter("truncate")
        os.ftruncate(handle, size)

    def rename(self, old: Path, new: Path) -> None:  # type: ignore[override]
        self._enter("rename", new)
        old.rename(new)

    def unlink(self, path: Path) -> None:  # type: ignore[override]
        self._enter("unlink", path)
        path.unlink()

    def duplicate(self, handle: int) -> int:
        self._enter("duplicate")
        return os.dup(handle)

    def open_append(self, path: Path) -> int:  # type: ignore[override]
        self._enter("open_append", path)
        return OsFiles.open_append(path)

    def open_read(self, path: Path) -> int:  # type: ignore[override]
        self._enter("open_read", path)
        return OsFiles.open_read(path)

    def open_replace(self, path: Path) -> int:  # type: ignore[override]
        self._enter("open_replace", path)
        return OsFiles.open_replace(path)

    def open_update(self, path: Path) -> int:  # type: ignore[override]
        self._enter("open_update", path)
        return OsFiles.open_update(path)

    def open_directory(self, path: Path) -> int:  # type: ignore[override]
        self._enter("open_directory", path)
        return OsFiles.open_directory(path)

    def make_directory(self, path: Path) -> None:  # type: ignore[override]
        self._enter("make_directory", path)
        OsFiles.make_directory(path)
