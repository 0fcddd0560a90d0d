"""From whatever lies in a log's directory to a log that can be served and appended to.

Two things are told apart. A torn tail is what a crash left of a write that nobody was told of: nothing good lies behind
it, and it is cut off. Everything else that is not good is damage: it lies before an offset that was synced (synced.py,
checkpoint.py) or has good batches behind it. Damage is never cut and never passed over in silence: its offsets cannot
be read, what lies before and behind it can, and the report names it.

Segments that were synced whole are taken as they are, in doubt (see lazy_check.py); damage in them is found and told
when a reader comes there. All others are scanned. Cut bytes are kept in a file of their own, unless they are the
beginning of a batch whose end was never written, or zeros.

Doing it twice gives the same as doing it once: the second time finds what the first has left, and nothing to cut.
On a disk that refuses changes the log can still be read: `mending.refusal` says why nothing can be written.
"""

import re
from pathlib import Path
from typing import Final

from brokers.log.config import LogConfig
from brokers.log.epochs import OFFSET_MAX, Epochs
from brokers.log.files import Files, read_file, sync_directory
from brokers.log.index import NO_TIMESTAMP, Extent, Index
from brokers.log.recovery.checkpoint import FILE_NAME, Checkpoint, decode_checkpoint
from brokers.log.recovery.lazy_check import Doubt
from brokers.log.recovery.mending import Mending
from brokers.log.recovery.report import Damage, RecoveryReport, tell_damage
from brokers.log.recovery.scan import Hole, Surveyed, survey
from brokers.log.recovery.synced import SYNCED_NAME, SyncedRecord
from brokers.log.segment import Segment, load_index
from brokers.notices import Notices

_SEGMENT_NAME: Final = re.compile(r"(\d{20})\.log")


class Recovery:
    """One start. After `run` the attributes hold the log's state; the last segment's handle is open for appending.

    No crash takes what lies before `promised_offset`: it was synced, or the log was closed in order behind it.
    """

    def __init__(self, files: Files, directory: Path, config: LogConfig, notices: Notices) -> None:
        self.files = files
        self.directory = directory
        self.config = config
        self.notices = notices
        self.segments: list[Segment] = []
        self.epochs = Epochs()
        self.synced = SyncedRecord(files, directory)
        self.mending = Mending(files, directory, notices, durable=config.durable)
        self.recovered_offset = self.promised_offset = 0
        self.start_offset: int | None = None
        self._clean_end: int | None = None
        self._epochs_known = False
        self._scanned_bytes = 0
        self._damaged: list[Damage] = []
        self._distrusted: list[str] = []

    def run(self) -> None:
        """Recover; OSError when the directory cannot even be read."""
        self.mending.change("make the directory", lambda: self.files.make_directory(self.directory))
        names = self.files.list_names(self.directory)
        if not names and self.config.durable:
            self.mending.change("sync the parent directory", lambda: sync_directory(self.files, self.directory.parent))
        self._read_promises()
        self._take_segments(sorted(int(match[1]) for name in names if (match := _SEGMENT_NAME.fullmatch(name))))
        self._epochs_known = True
        self._note_gaps()
        self.epochs.cut(self.end_offset)
        self.recovered_offset = min(self.recovered_offset, self.end_offset)
        self.mending.remove_orphans({segment.base_offset for segment in self.segments}, self.end_offset)
        self._open_last()
        self.report = self._report()

    def close(self) -> None:
        """Give all handles back, for a start that failed."""
        for segment in self.segments:
            segment.close()
        self.synced.close()

    @property
    def end_offset(self) -> int:
        """Where the log ends as far as it is known yet. Offsets that were promised are never given out again."""
        return max(self.segments[-1].end_offset if self.segments else 0, self.promised_offset)

    def epoch_span(self, offset: int, found_epoch: int) -> tuple[int, int]:
        """See EpochSpan. Without a list of epochs, believe those that do not fall, and note them."""
        if self._epochs_known:
            return self.epochs.span_at(offset)
        if found_epoch > self.epochs.latest:
            self.epochs.begin(found_epoch, offset)
        return self.epochs.latest, offset + 1

    def _read_promises(self) -> None:
        data = read_file(self.files, self.directory / FILE_NAME)
        checkpoint = decode_checkpoint(data) if data is not None else None
        self._epochs_known = checkpoint is not None
        if checkpoint is None:
            if data is not None:
                self._distrusted.append(FILE_NAME)
            checkpoint = Checkpoint(0, None, ())
        self.epochs = Epochs(checkpoint.epochs)
        self._clean_end, self.start_offset = checkpoint.clean_end, checkpoint.start_offset
        self.recovered_offset = checkpoint.recovered_offset if checkpoint.clean_end is None else checkpoint.clean_end
        if not self.synced.read():
            self._distrusted.append(SYNCED_NAME)
        self.promised_offset = max(self.recovered_offset, self.synced.offset)

    def _note_gaps(self) -> None:
        """Offsets that no file holds, between two segments and behind the last."""
        begins = [segment.base_offset for segment in self.segments[1:]]
        for segment, behind in zip(self.segments, [*begins, self.end_offset], strict=False):
            if segment.end_offset < behind:
                self._damaged.append(Damage(segment.end_offset, behind, f"nothing behind {segment.path.name}"))

    def _report(self) -> RecoveryReport:
        begin, front = self.segments[0].base_offset, None
        if self.start_offset is None or begin <= self.start_offset:
            self.start_offset = begin
        else:
            front = Damage(self.start_offset, begin, f"nothing before {self.segments[0].path.name}")
        return RecoveryReport(
            self._clean_end is not None and not (self.mending.cuts or self._damaged or front),
            self._scanned_bytes,
            tuple(self.mending.cuts),
            tuple(sorted(self._damaged, key=lambda damage: damage.begin)),
            front,
            tuple(self._distrusted),
        )

    # Segments

    def _take_segments(self, bases: list[int]) -> None:
        """Take the segments that were synced whole, scan the others, keep all that have good batches behind them."""
        scanned: list[tuple[Segment, Surveyed]] = []
        for number, base_offset in enumerate(bases):
            next_base = bases[number + 1] if number + 1 < len(bases) else None
            segment = self._opened(base_offset)
            if next_base is not None and next_base <= self.recovered_offset:
                self._take_sealed_in_doubt(segment, next_base)
            elif next_base is not None or not self._take_closed_in_order(segment):
                found = self._survey(segment, next_base)
                if self._holds_anything(segment, found):
                    self._keep(scanned, base_offset)
                    scanned = []
                scanned.append((segment, found))
        self._end(scanned)

    def _opened(self, base_offset: int) -> Segment:
        extent = Extent(base_offset, base_offset, 0, NO_TIMESTAMP)
        segment = Segment(self.files, self.directory, extent, self.config.index_interval_bytes)
        segment.handle = self.files.open_read(segment.path)
        segment.size = self.files.size(segment.handle)
        return segment

    def _take_sealed_in_doubt(self, segment: Segment, next_base: int) -> None:
        """Believe the index; make it again when it is not one of this segment, whole."""
        loaded = load_index(self.files, segment.index_path, self.config.index_interval_bytes)
        whole = (segment.base_offset, next_base, segment.size)
        if loaded is not None and loaded[1].span == whole and loaded[0].is_in_order(loaded[1]):
            self._doubt(segment, *loaded)
            return
        self._end_at(segment, self._survey(segment, next_base), next_base)
        self.mending.seal(segment)

    def _take_closed_in_order(self, segment: Segment) -> bool:
        """Believe the last segment if the log was closed in order and its index and its size say the same."""
        if self._clean_end is None or not segment.size:
            return False
        loaded = load_index(self.files, segment.index_path, self.config.index_interval_bytes)
        whole = (segment.base_offset, self._clean_end, segment.size)
        if loaded is None or loaded[1].span != whole or not loaded[0].is_in_order(loaded[1]):
            return False
        self._doubt(segment, *loaded)
        return True

    def _doubt(self, segment: Segment, index: Index, extent: Extent) -> None:
        """Take a segment whose index is saved as what that says."""
        segment.size, segment.end_offset, segment.timestamp_max = extent.size, extent.end_offset, extent.timestamp_max
        segment.doubt = Doubt(index, (extent.size, extent.end_offset), self.epoch_span, self._tell)
        segment.close()
        self.segments.append(segment)

    def _tell(self, damage: Damage) -> None:
        tell_damage(self.directory, self.notices, damage)

    def _survey(self, segment: Segment, next_base: int | None) -> Surveyed:
        self._scanned_bytes += segment.size
        interval_bytes = self.config.index_interval_bytes
        end_max, known_end = (OFFSET_MAX, self.promised_offset) if next_base is None else (next_base, next_base)
        extent = Extent(segment.base_offset, end_max, segment.size, NO_TIMESTAMP)
        return survey(self.files, segment.handle, extent, interval_bytes, self.epoch_span, known_end)

    def _holds_anything(self, segment: Segment, found: Surveyed) -> bool:
        """Whether a good batch is in it, or offsets that were promised belong there."""
        return found.extent.size > 0 or segment.base_offset < self.promised_offset

    def _keep(self, scanned: list[tuple[Segment, Surveyed]], next_base: int) -> None:
        """Keep segments that have something good behind them, whatever their own state."""
        for number, (segment, found) in enumerate(scanned, start=1):
            self._end_at(segment, found, scanned[number][0].base_offset if number < len(scanned) else next_base)
            self.mending.seal(segment)

    def _end(self, scanned: list[tuple[Segment, Surveyed]]) -> None:
        """End the log with the last segment that holds anything, and an empty one that begins where that ends.

        Segments behind it hold nothing; the last is removed first, so that a crash here leaves no gap.
        """
        if scanned and self._holds_anything(*scanned[0]):
            self._end_at(*scanned.pop(0), None)
        stays = bool(scanned) and (not self.segments or scanned[0][0].base_offset == self.end_offset)
        for segment, _ in reversed(scanned[stays:]):
            self.mending.drop(segment, self.end_offset)
        if stays:
            if self.segments and self.segments[-1].handle >= 0:
                self.mending.seal(self.segments[-1])
            self._end_at(*scanned[0], None)

    def _end_at(self, segment: Segment, found: Surveyed, next_base: int | None) -> None:
        """Take a scanned segment. Without a next one, what lies behind its good end is a torn tail if nobody was
        promised it, and cut; in all other cases it is damage and stays."""
        index, extent, holes = found.index, found.extent, found.holes
        end_offset = max(extent.end_offset, self.promised_offset) if next_base is None else next_base
        if extent.size < segment.size:
            if extent.end_offset < end_offset:
                holes = (*holes, Hole(extent.size, extent.end_offset, end_offset))
                extent = Extent(segment.base_offset, end_offset, segment.size, extent.timestamp_max)
                if not len(index):
                    index.add(segment.base_offset, 0, NO_TIMESTAMP)
            else:
                self.mending.cut(segment, extent)
        segment.index, segment.idempotent = index, found.idempotent or bool(holes)
        segment.size, segment.end_offset, segment.timestamp_max = extent.size, extent.end_offset, extent.timestamp_max
        if holes:
            segment.doubt = Doubt(index, (extent.size, extent.end_offset), self.epoch_span, self._tell, holes)
            where = f"{segment.path.name} at byte "
            self._damaged += [Damage(hole.offset, hole.end_offset, f"{where}{hole.position}") for hole in holes]
        self.segments.append(segment)

    # Appending

    def _open_last(self) -> None:
        """Open a segment for appending: the last one if it was scanned and is whole, else a new one.

        A segment that is in doubt is never appended to, so that what is synced later never lies behind damage.
        """
        last = self.segments[-1] if self.segments else None
        if last is None or last.doubt is not None or last.end_offset < self.end_offset:
            if last is not None and last.handle >= 0:
                self.mending.seal(last)
            extent = Extent(self.end_offset, self.end_offset, 0, NO_TIMESTAMP)
            last = Segment(self.files, self.directory, extent, self.config.index_interval_bytes)
            self.segments.append(last)
        self.mending.change(f"open {last.path.name} for appending", last.open_for_appending)
