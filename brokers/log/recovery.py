"""From whatever lies in a log's directory to a log that can be served and appended to.

What was synced or closed in order is kept and taken in doubt (see doubt.py): it is never cut, and damage in it is
reported when a reader comes there. Everything else is scanned from its beginning; the first batch that is not good ends
the log, as a write that was torn by a crash ends there. What lies behind is cut, and the report says what.

Doing it twice gives the same as doing it once: the second time finds what the first has left, and nothing to cut.
On a disk that refuses changes the log can still be read: `refusal` says why nothing can be written.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from brokers.log.checkpoint import FILE_NAME, Checkpoint, decode_checkpoint
from brokers.log.config import LogConfig
from brokers.log.doubt import Doubt
from brokers.log.epochs import Epochs
from brokers.log.files import Files, read_file, sync_directory
from brokers.log.index import NO_TIMESTAMP, Extent, Index
from brokers.log.scan import survey
from brokers.log.segment import Segment, load_index

_SEGMENT_NAME: Final = re.compile(r"(\d{20})\.log")
_COMPANION_NAME: Final = re.compile(r"(\d{20})\.(index|producers)|.+\.new")


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What a start found. `cut_offset` is where the log ends because what lay behind was torn, None if nothing was."""

    clean: bool
    scanned_bytes: int
    indexes_rebuilt: int
    cut_offset: int | None
    cut_bytes: int


class Recovery:
    """One start. After `run` the attributes hold the log's state; the last segment's handle is open for appending."""

    def __init__(self, files: Files, directory: Path, config: LogConfig) -> None:
        self.files = files
        self.directory = directory
        self.config = config
        self.segments: list[Segment] = []
        self.epochs = Epochs()
        self.recovered_offset = 0
        self.refusal: str | None = None
        self._clean_end: int | None = None
        self._epochs_known = False
        self._scanned_bytes = self._indexes_rebuilt = self._cut_bytes = 0
        self._cut_offset: int | None = None

    def run(self) -> RecoveryReport:
        """Recover; OSError when the directory cannot even be read."""
        self._change("make the directory", lambda: self.files.make_directory(self.directory))
        names = self.files.list_names(self.directory)
        if not names and self.config.durable:
            self._change("sync the parent directory", lambda: sync_directory(self.files, self.directory.parent))
        self._read_checkpoint()
        self._take_segments(sorted(int(match[1]) for name in names if (match := _SEGMENT_NAME.fullmatch(name))))
        self._epochs_known = True
        if self.end_offset < self.recovered_offset:
            self._note_cut(self.end_offset, 0)  # files are gone that were promised to be there
        self.epochs.cut(self.end_offset)
        self.recovered_offset = min(self.recovered_offset, self.end_offset)
        self._remove_orphans()
        self._open_last()
        clean = self._clean_end is not None and self._cut_offset is None
        return RecoveryReport(clean, self._scanned_bytes, self._indexes_rebuilt, self._cut_offset, self._cut_bytes)

    @property
    def end_offset(self) -> int:
        """Where the log ends as far as it is known yet."""
        return self.segments[-1].end_offset if self.segments else 0

    def epoch_span(self, offset: int, found_epoch: int) -> tuple[int, int]:
        """See EpochSpan. Without a list of epochs, believe those that do not fall, and note them."""
        if self._epochs_known:
            return self.epochs.span_at(offset)
        if found_epoch > self.epochs.latest:
            self.epochs.begin(found_epoch, offset)
        return self.epochs.latest, offset + 1

    def _read_checkpoint(self) -> None:
        data = read_file(self.files, self.directory / FILE_NAME)
        checkpoint = decode_checkpoint(data) if data is not None else None
        self._epochs_known = checkpoint is not None
        checkpoint = checkpoint or Checkpoint(0, None, ())
        self.epochs = Epochs(checkpoint.epochs)
        self._clean_end = checkpoint.clean_end
        self.recovered_offset = checkpoint.recovered_offset if checkpoint.clean_end is None else checkpoint.clean_end

    def _change(self, what: str, change: Callable[[], object]) -> None:
        """Do something to the disk; if it refuses, the log will be served but refuse writes."""
        try:
            change()
        except OSError as error:
            self.refusal = self.refusal or f"cannot {what} in {self.directory}: {error}"

    # Segments

    def _take_segments(self, bases: list[int]) -> None:
        for number, base_offset in enumerate(bases):
            next_base = bases[number + 1] if number + 1 < len(bases) else None
            segment = self._opened(base_offset)
            self.segments.append(segment)
            if next_base is None:
                self._take_last(segment)
            elif next_base <= self.recovered_offset:
                self._take_sealed_in_doubt(segment, next_base)
            else:
                self._scan(segment)
                if segment.end_offset != next_base:
                    self._cut_behind(segment.end_offset, bases[number + 1 :])
                    return
                self._close_sealed(segment, save_index=True)

    def _opened(self, base_offset: int) -> Segment:
        extent = Extent(base_offset, base_offset, 0, NO_TIMESTAMP)
        segment = Segment(self.files, self.directory, extent, self.config.index_interval_bytes)
        segment.handle = self.files.open_read(segment.path)
        segment.size = self.files.size(segment.handle)
        return segment

    def _take_sealed_in_doubt(self, segment: Segment, next_base: int) -> None:
        """Believe the index; make it again when it is not one of this segment."""
        loaded = load_index(self.files, segment.index_path, self.config.index_interval_bytes)
        usable = (
            loaded is not None and loaded[1].base_offset == segment.base_offset <= loaded[1].end_offset <= next_base
        )
        if loaded is None or not usable:
            loaded = self._rebuilt(segment, next_base)
        self._doubt(segment, *loaded)
        self._close_sealed(segment, save_index=not usable)

    def _rebuilt(self, segment: Segment, next_base: int) -> tuple[Index, Extent]:
        """The index of a segment that is known to end at `next_base`, even if it is damaged before that."""
        index, extent = self._survey(segment)
        self._indexes_rebuilt += 1
        if not len(index):
            index.add(segment.base_offset, 0, NO_TIMESTAMP)
        return index, Extent(segment.base_offset, next_base, max(segment.size, extent.size), extent.timestamp_max)

    def _take_last(self, segment: Segment) -> None:
        """Believe the last segment if the log was closed in order and its index and its size say the same."""
        loaded = load_index(self.files, segment.index_path, self.config.index_interval_bytes)
        if self._clean_end is None or loaded is None or not loaded[1].size:
            self._scan(segment)
            return
        index, extent = loaded
        believed = (extent.base_offset, extent.end_offset) == (segment.base_offset, self._clean_end)
        if not believed or segment.size < extent.size:
            self._scan(segment)
            return
        self._doubt(segment, index, extent)
        self._close_sealed(segment, save_index=False)

    def _doubt(self, segment: Segment, index: Index, extent: Extent) -> None:
        segment.index, segment.size = index, extent.size
        segment.end_offset, segment.timestamp_max = extent.end_offset, extent.timestamp_max
        segment.doubt = Doubt(len(index), (extent.size, extent.end_offset), self.epoch_span)

    def _close_sealed(self, segment: Segment, *, save_index: bool) -> None:
        """Close a sealed segment, which is opened again when it is read; it stays open if its index cannot be saved."""
        if save_index:
            try:
                segment.save_index(durable=self.config.durable)
            except OSError:
                return
        segment.close()

    def _scan(self, segment: Segment) -> None:
        """Prove the whole segment, and cut it where it stops being good."""
        segment.index, extent = self._survey(segment)
        segment.end_offset, segment.timestamp_max = extent.end_offset, extent.timestamp_max
        self._cut(segment, extent)
        segment.size = extent.size

    def _survey(self, segment: Segment) -> tuple[Index, Extent]:
        self._scanned_bytes += segment.size
        interval_bytes = self.config.index_interval_bytes
        found = survey(self.files, segment.handle, segment.extent, interval_bytes, self.epoch_span)
        index, extent, segment.idempotent = found
        return index, extent

    def _cut(self, segment: Segment, extent: Extent) -> None:
        """Remove what lies behind the segment's good end."""
        if segment.size == extent.size:
            return
        self._note_cut(extent.end_offset, segment.size - extent.size)

        def cut() -> None:
            handle = self.files.open_append(segment.path)
            try:
                self.files.truncate(handle, extent.size)
            finally:
                self.files.close(handle)

        self._change(f"cut {segment.path.name}", cut)

    def _cut_behind(self, end_offset: int, bases: list[int]) -> None:
        """Remove the segments behind one that ended early; the last first, so that a crash here leaves no gap."""
        for base_offset in reversed(bases):
            segment = self._opened(base_offset)
            self._note_cut(end_offset, segment.size)
            self._change(f"remove {segment.path.name}", segment.remove)

    def _note_cut(self, offset: int, size: int) -> None:
        self._cut_offset = offset
        self._cut_bytes += size

    def _remove_orphans(self) -> None:
        """Remove what has no segment any more and snapshots of a future that was cut off."""
        bases = {segment.base_offset for segment in self.segments}
        for name in self.files.list_names(self.directory):
            match = _COMPANION_NAME.fullmatch(name)
            if match is None:
                continue
            orphaned = match[2] == "index" and int(match[1]) not in bases
            if match[1] is None or orphaned or (match[2] == "producers" and int(match[1]) > self.end_offset):
                self._change(f"remove {name}", partial(self.files.unlink, self.directory / name))

    def _open_last(self) -> None:
        """Open a segment for appending: the last one if it was scanned, else a new one.

        A segment that is in doubt is never appended to, so that what is synced later never lies behind damage that a
        later scan would take for the log's end.
        """
        last = self.segments[-1] if self.segments else None
        if last is None or last.doubt is not None:
            extent = Extent(self.end_offset, self.end_offset, 0, NO_TIMESTAMP)
            last = Segment(self.files, self.directory, extent, self.config.index_interval_bytes)
            self.segments.append(last)
        self._change(f"open {last.path.name} for appending", last.open_for_appending)
