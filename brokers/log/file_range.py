"""Batches that are lent instead of read: a socket takes them from their file, so they never lie in memory here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokers.log.errors import LogDiskFailed

if TYPE_CHECKING:
    from brokers.log.segment import Segment


class Stretch:
    """Whole batches that lie one behind the other in an open segment.

    It shares a handle with all lent ranges of the file, so the segment may be closed or removed before it is sent.
    Bytes that a socket has taken are the file's own pages: a cut after that may still change them, which the client's
    check of the CRC finds. A cut before ends the sending.
    """

    __slots__ = ("_cuts", "_files", "_handle", "_position", "_segment", "_size")

    def __init__(self, segment: Segment, position: int, size: int) -> None:
        """Raises `LogDiskFailed` where there is no handle left."""
        self._files = segment.files
        self._segment, self._cuts = segment, segment.cuts
        self._position, self._size = position, size
        try:
            self._handle = segment.lend()
        except OSError as error:
            raise LogDiskFailed(f"cannot lend {segment.path.name}: {error}") from error

    def __len__(self) -> int:
        return self._size

    def send(self, socket: int, at: int, bytes_max: int) -> int:
        """Give the socket what lies `at` bytes behind the beginning: how many it took, at least one.

        Raises what the socket raises, `BlockingIOError` when it is full; `LogDiskFailed` when the file was cut.
        """
        sent = 0
        if self._segment.cuts == self._cuts:
            sent = self._files.send(socket, self._handle.number, self._position + at, min(bytes_max, self._size - at))
        if not sent:
            raise LogDiskFailed(f"{self._segment.path.name} was cut while it was sent")
        return sent
