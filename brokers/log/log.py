"""The log of one partition: batches in, batches out, nothing lost that was promised.

All calls are synchronous and belong on one thread, the event loop's. `append` reaches the operating system and returns;
what has to be on the disk before it is acknowledged goes through flush.py. Reads come from the page cache.

Errors: `errors.py` says for each class whether the call certainly did nothing. A write that failed for want
of space, handles or memory is undone and refused, and the next one is tried. After any other failed write the log
refuses all further ones until it is opened again, and serves what it held; the good end is remembered in memory, so
bytes that could not be cut off are never served.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from brokers.log.config import LogConfig, count_over
from brokers.log.epochs import UNKNOWN_EPOCH
from brokers.log.errors import (
    LeaderEpochStale,
    LogChangeUncertain,
    LogClosed,
    LogDiskFailed,
    LogError,
    LogRefusesWrites,
    SequenceError,
)
from brokers.log.files import OS_FILES, Files, is_read_only, is_shortage, replace_file, short_write
from brokers.log.producers import Producer
from brokers.log.reader import Reader
from brokers.log.recovery.checkpoint import FILE_NAME, Checkpoint, encode_checkpoint
from brokers.log.recovery.recovery import Recovery
from brokers.log.recovery.snapshots import prune_snapshots, restore_producers, save_producers
from brokers.log.segment import OpenSegments, Segment, new_segment
from brokers.log.syncing import Syncing
from brokers.log.writing import Writing
from brokers.notices import Notices
from brokers.wire.batch import LENGTH_END, NO_PRODUCER, PLACE, BatchHeader
from brokers.wire.rows import Row

Batch = tuple[bytearray | memoryview, BatchHeader]
"""A writable buffer that holds exactly one batch, and the header that `check_produced` gave for it."""
_UNSAVED: Final = -2  # no leader's epoch


class Log:
    """See the module. Made by `open`, ended by `close` or `abandon`; afterwards it refuses, or does nothing."""

    @classmethod
    def open(
        cls,
        directory: Path,
        config: LogConfig,
        *,
        now_ms: int,
        files: Files = OS_FILES,
        open_segments: OpenSegments | None = None,
        leader_epoch: int = UNKNOWN_EPOCH,
        notices: Notices | None = None,
    ) -> "Log":
        """Recover the log in the directory, which is made if it is missing.

        `now_ms` is milliseconds since 1970 on a clock that does not jump; producers expire by it. `open_segments`: see
        `share`. `leader_epoch` is that of the appends to come, where it is known: the first one finds it noted, and
        need not wait for the disk. `notices` is one for the whole process. On a disk that refuses changes the log opens
        for reading and `refusal` says why. LogDiskFailed when it cannot even be read, and for want of file handles or
        memory.
        """
        recovery = Recovery(files, directory, config, notices or Notices())
        if open_segments is None:
            open_segments = OpenSegments()
        try:
            recovery.run()
            return cls(recovery, open_segments, now_ms, leader_epoch)
        except LogError:
            recovery.close()
            raise
        except OSError as error:
            recovery.close()
            raise LogDiskFailed(f"cannot open the log in {directory}: {error}") from error

    def __init__(self, recovery: Recovery, open_segments: OpenSegments, now_ms: int, leader_epoch: int) -> None:
        self.recovery = recovery.report
        self._files, self._directory, self._config = recovery.files, recovery.directory, recovery.config
        self._segments = recovery.segments
        self._active = recovery.segments[-1]
        self._open_segments = open_segments
        self.epochs = recovery.epochs
        self.reader = Reader(self._segments, open_segments, self._config.read_positions_max)
        self.writing = Writing(self._directory, recovery.notices, recovery.mending.refusal)
        self.syncing = Syncing(recovery, open_segments, self.writing, self._save_checkpoint)
        self._notices, self._first_offset = recovery.notices, recovery.start_offset
        self._epoch_span = recovery.epoch_span
        self.start_offset = self._segments[0].base_offset
        self.end_offset = self._active.end_offset
        self._restore_producers(now_ms)
        if leader_epoch > self.epochs.latest:
            self.epochs.begin(leader_epoch, self.end_offset)
        self._saved_epoch = self.epochs.latest
        if self.writing.refusal is None:
            self._note_open()
        self.recovery.tell(self._directory, self._notices)

    def _note_open(self) -> None:
        """Have it in the checkpoint that the log is not closed. If the disk refuses, it can still be read; OSError for
        want of a handle or memory, so that the log is opened again instead."""
        try:
            self._save_checkpoint()
        except OSError as error:
            if is_shortage(error):
                raise
            self.writing.end(f"cannot note that it is open: {error}", told=is_read_only(error))

    # Appending

    def append(self, batches: Sequence[Batch], leader_epoch: int) -> list[int | SequenceError]:
        """Append the batches with one write and return for each its base offset, or why its producer may not.

        The buffers are patched where they lie and may be reused once this returns. A batch that its idempotent producer
        sent before is not stored again: its offset is that of the first time (which may not be synced yet either).
        Whatever is raised concerns the whole call: LogRefusesWrites and LeaderEpochStale say that none of it was
        appended, LogRefusesForNow so too and that it may be sent again, LogChangeUncertain that it could not be undone.
        """
        self._make_ready(sum([len(batch) for batch, _ in batches]), leader_epoch)
        active, producers = self._active, self._producers
        index, interval_bytes = active.index, active.interval_bytes
        offset, position, timestamp_max = self.end_offset, active.size, active.timestamp_max
        due_position = index.due_position
        entries: list[tuple[int, int, int]] = []
        results: list[int | SequenceError] = []
        buffers: list[bytearray | memoryview] = []
        noted: list[tuple[int, Producer | None]] = []
        for batch, header in batches:
            if header[9] != NO_PRODUCER:  # fields by number: names cost twice as much here
                try:
                    earlier = producers.duplicate_of(header)
                except SequenceError as error:
                    results.append(error)
                    continue
                if earlier is not None:
                    results.append(earlier)
                    continue
                noted.append((header[9], producers.note(header, offset)))
                active.idempotent = True
            PLACE.pack_into(batch, 0, offset, header[1], leader_epoch)
            if position >= due_position:
                entries.append((offset, position, timestamp_max))
                due_position = position + interval_bytes
            if header[8] > timestamp_max:
                timestamp_max = header[8]
            buffers.append(batch)
            results.append(offset)
            position += header[1] + LENGTH_END
            offset += header[6] + 1
        if buffers:
            try:
                self._write(buffers, position - active.size)
            except LogError:
                producers.undo(noted)
                raise
            for entry in entries:
                index.add(*entry)
            active.size, active.timestamp_max = position, timestamp_max
            active.end_offset = self.end_offset = offset
        return results

    def append_row(self, row: Row, leader_epoch: int) -> range:
        """Append batches that are alike: the base offsets. Raises as `append` does."""
        batches, size, timestamps = row.batches(), row.header.size, row.timestamps
        records = row.header.records_count
        self._make_ready(size * len(batches), leader_epoch)
        active, begin = self._active, self._active.size
        offsets = range(self.end_offset, self.end_offset + records * len(batches), records)
        row.place(offsets, leader_epoch)
        self._write(batches, size * len(batches))
        timestamp_max, seen = active.timestamp_max, 0
        while (number := max(0, -(-(active.index.due_position - begin) // size))) < len(batches):
            timestamp_max, seen = max((timestamp_max, *timestamps[seen:number])), number
            active.index.add(offsets[number], begin + number * size, timestamp_max)
        active.size = begin + size * len(batches)
        active.timestamp_max = max((timestamp_max, *timestamps[seen:]))
        active.end_offset = self.end_offset = offsets.stop
        return offsets

    def _make_ready(self, size_bytes: int, leader_epoch: int) -> None:
        """Before so much is appended."""
        if self.writing.refusal is not None:
            raise LogRefusesWrites(self.writing.refusal)
        if leader_epoch != self._saved_epoch:
            self._begin_epoch(leader_epoch)
        if self._active.size and self._active.size + size_bytes > self._config.segment_bytes:
            self.writing.prepare("begin a segment", self._roll)

    def _write(self, buffers: Sequence[bytearray | memoryview], size: int) -> None:
        try:
            written = self._active.write(buffers)
            if written == size:
                return
            failed = short_write(written, size, self._active.path)
        except OSError as error:
            failed = error
        try:
            self._files.truncate(self._active.handle, self._active.size)
        except OSError as error:
            refusal = self.writing.end(f"{failed.strerror}, which could not be undone: {error}")
            raise LogChangeUncertain(refusal) from error
        self.writing.refuse(f"cannot write {self._active.path.name}", failed)

    def _begin_epoch(self, leader_epoch: int) -> None:
        """Have the new epoch in the checkpoint before a batch carries it, so that a start can tell it from damage."""
        if leader_epoch < self.epochs.latest:
            raise LeaderEpochStale(f"epoch {leader_epoch} is over, the log is at {self.epochs.latest}")
        if leader_epoch > self.epochs.latest:
            self.epochs.begin(leader_epoch, self.end_offset)
        self._saved_epoch = _UNSAVED
        self.writing.prepare("note a leader epoch", self._save_checkpoint)

    def _roll(self) -> None:
        sealed = self._active
        self._active = new_segment(self._files, self._directory, self.end_offset, sealed.interval_bytes)
        self._segments.append(self._active)
        self.syncing.rolled(self._active)
        self.reader.note_position(self.end_offset, self._active, 0)
        try:
            sealed.save_index(durable=False)
            save_producers(self._files, self._directory, self._producers, self.end_offset, durable=False)
        except OSError:
            return  # copies of what the segments hold; without its index the segment just stays open
        self._open_segments.adopt(sealed)

    # Cutting

    def truncate_to(self, offset: int) -> int:
        """Cut everything from `offset` on, and the batch that contains it; the new end is returned.

        Within damage the cut is made where the damage begins, so that a follower can fetch what it has lost again.
        Producers and epochs go back with it. LogChangeUncertain when the disk stops it half-way.
        """
        if self.writing.refusal is not None:
            raise LogRefusesWrites(self.writing.refusal)
        if offset == self.end_offset:
            return offset
        segment, position, end_offset = self.reader.cut_point(offset)
        try:
            self._truncate(segment, position, end_offset)
        except OSError as error:
            raise LogChangeUncertain(self.writing.end(f"cutting at {end_offset} failed: {error}")) from error
        return end_offset

    def _truncate(self, last: Segment, position: int, end_offset: int) -> None:
        """The promises first, so that no crash in between finds more promised than is there."""
        self.reader.forget_positions()
        self.epochs.cut(end_offset)
        self.syncing.begin_cut(last, end_offset, durable=self._config.durable)
        if last is not self._active:
            last.open_for_appending()
            self._open_segments.forget(last)
            while self._segments[-1] is not last:
                self._remove(self._segments[-1])
            self._active = last
        last.cut(position, end_offset)
        self.end_offset = end_offset
        self.syncing.end_cut(last, end_offset)
        prune_snapshots(self._files, self._directory, range(end_offset + 1))
        self._restore_producers(self._producers.now_ms)

    def _remove(self, segment: Segment) -> None:
        segment.remove()
        self._open_segments.forget(segment)
        self._segments.remove(segment)
        self.syncing.removed(segment)

    def retain(self, now_ms: int) -> int:
        """Remove whole segments that the retention settings no longer keep, never the growing one; how many went.

        To be called now and then, with the same clock as `open`: it also forgets producers that stopped writing.
        Records without a timestamp are kept by time for ever. LogDiskFailed when a file cannot be removed; LogClosed.
        """
        if self.reader.closed:
            raise LogClosed(f"{self._directory} is closed")
        self._producers.expire(now_ms, self._config.producer_unused_ms_max)
        count = count_over(self._segments, self._config, now_ms)
        if not count:
            return 0
        try:
            self._first_offset = self._segments[count].base_offset  # noted first: what is gone then is not missed
            self._save_checkpoint()
            for _ in range(count):
                self.reader.forget_positions()
                self._remove(self._segments[0])
                self.start_offset = self._segments[0].base_offset
                self.epochs.drop_before(self.start_offset)
                prune_snapshots(self._files, self._directory, range(self.start_offset, self.end_offset + 1))
        except OSError as error:
            line = f"{self._directory}: cannot remove a segment: {error}"
            self._notices.tell_once(line, removals_failed=1)
            raise LogDiskFailed(line) from error
        return count

    # Ending

    def close(self) -> bool:
        """Close the files. True when everything is in order, so that the next start needs no scan; call it once.

        Appended data is synced first, unless the policy is `never`. No flush may be running.
        """
        in_order = self.writing.refusal is None and self._settle()
        self._close_files("closed")
        return in_order

    def _settle(self) -> bool:
        durable = self._config.durable
        try:
            if durable:
                self.syncing.flush()
            self._active.save_index(durable=durable)
            save_producers(self._files, self._directory, self._producers, self.end_offset, durable=durable)
            keep = {segment.base_offset for segment in self._segments} | {self.end_offset}
            prune_snapshots(self._files, self._directory, keep)
            self._save_checkpoint(clean=True)
        except (OSError, LogError):
            return False  # the next start scans what is not known to be in order
        return True

    def abandon(self) -> None:
        """Close the files of a log whose directory is to be deleted: nothing is written or synced any more."""
        self._close_files("deleted")

    def share(self, open_segments: OpenSegments) -> None:
        """Keep the sealed segments that are open among these from now on. A thread that opens or closes a log does so
        with a set of its own; all logs that are in use have one together."""
        for segment in self._segments:
            if segment in self._open_segments:
                self._open_segments.forget(segment)
                open_segments.adopt(segment)
        self._open_segments = self.reader.open_segments = self.syncing.open_segments = open_segments

    def _close_files(self, how: str) -> None:
        self.reader.close()
        self.syncing.close()
        self.writing.refusal = self.writing.refusal or f"{self._directory} was {how}"
        for segment in self._segments:
            self._open_segments.forget(segment)
            segment.close()

    def _save_checkpoint(self, *, clean: bool = False) -> None:
        clean_end = self.end_offset if clean else None
        epochs = tuple(self.epochs.entries)
        checkpoint = Checkpoint(self.syncing.recovered_offset, clean_end, epochs, self._first_offset)
        path = self._directory / FILE_NAME
        replace_file(self._files, path, encode_checkpoint(checkpoint), durable=self._config.durable)
        self._saved_epoch = self.epochs.latest

    def _restore_producers(self, now_ms: int) -> None:
        where = self._files, self._directory, self._segments, self._open_segments
        self._producers = restore_producers(*where, self._config.producers_max, self._epoch_span, now_ms)
