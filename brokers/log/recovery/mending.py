"""The changes that a start makes on the disk: torn tails go, and so do files that no segment uses.

A disk that refuses a change makes the log one that can be read alone: `refusal` says why.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from brokers.log.files import Files, is_read_only, is_shortage
from brokers.log.recovery.report import Cut
from brokers.log.recovery.tails import copy_aside, is_worthless, unused_path

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from brokers.log.index import Extent
    from brokers.log.segment import Segment
    from brokers.notices import Notices

_COMPANION_NAME: Final = re.compile(r"(\d{20})\.(index|producers)|.+\.new")


class Mending:
    """The mending of one log. `cuts` lists the bytes removed behind a good end."""

    def __init__(self, files: Files, directory: Path, notices: Notices, *, durable: bool) -> None:
        self.refusal: str | None = None
        self.cuts: list[Cut] = []
        self._files = files
        self._directory = directory
        self._notices = notices
        self._durable = durable

    def change(self, what: str, change: Callable[[], object]) -> None:
        """Do something to the disk; if it refuses, the log will be served but refuse writes.

        OSError for want of a file handle or memory: such a start is tried again as a whole.
        """
        try:
            change()
        except OSError as error:
            if is_shortage(error):
                raise
            if self.refusal is None:
                self.refusal = f"cannot {what} in {self._directory}: {error}"
                if not is_read_only(error):  # the process has said that of the file system
                    self._notices.tell(self.refusal, logs_closed_for_writing=1)

    def seal(self, segment: Segment) -> None:
        """Save the index and close, to be opened again for reading; it stays open if its index cannot be saved."""
        try:
            segment.save_index(durable=self._durable)
        except OSError:
            return
        segment.close()

    def cut(self, segment: Segment, extent: Extent) -> None:
        """Remove what lies behind the segment's good end."""
        begin, end = extent.size, segment.size
        worthless = is_worthless(self._files, segment.handle, begin, end, extent.end_offset)
        aside = None if worthless else unused_path(self._files, self._directory, extent.end_offset)

        def cut() -> None:
            if aside is not None:
                copy_aside(self._files, segment.handle, begin, end, aside, durable=self._durable)
            handle = self._files.open_append(segment.path)
            try:
                self._files.truncate(handle, begin)
            finally:
                self._files.close(handle)

        self.change(f"cut {segment.path.name}", cut)
        self.cuts.append(Cut(extent.end_offset, end - begin, segment.path.name, _name(aside)))

    def drop(self, segment: Segment, end_offset: int) -> None:
        """Remove a segment in which nothing is good, from a log that ends at that offset."""
        worthless = is_worthless(self._files, segment.handle, 0, segment.size, segment.base_offset)
        aside = None if worthless else unused_path(self._files, self._directory, segment.base_offset)
        segment.close()
        if aside is None:
            self.change(f"remove {segment.path.name}", partial(self._files.unlink, segment.path))
        else:
            self.change(f"set {segment.path.name} aside", partial(self._files.rename, segment.path, aside))
        if segment.size:
            self.cuts.append(Cut(end_offset, segment.size, segment.path.name, _name(aside)))

    def remove_orphans(self, bases: Collection[int], end_offset: int) -> None:
        """Remove what has no segment any more and snapshots of a future that was cut off."""
        for name in self._files.list_names(self._directory):
            match = _COMPANION_NAME.fullmatch(name)
            if match is None:
                continue
            orphaned = match[2] == "index" and int(match[1]) not in bases
            if match[1] is None or orphaned or (match[2] == "producers" and int(match[1]) > end_offset):
                self.change(f"remove {name}", partial(self._files.unlink, self._directory / name))


def _name(path: Path | None) -> str | None:
    return None if path is None else path.name
