"""The part of a log that is on the disk itself, and the part that has to be brought there (`flush.py` does it)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from brokers.log.errors import LogClosed, LogNotSynced, LogRefusesForNow, LogRefusesWrites, LogSyncFailed
from brokers.log.files import is_passing
from brokers.log.flush import Flush, flush_handles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from brokers.log.files import Files
    from brokers.log.recovery.recovery import Recovery
    from brokers.log.recovery.synced import SyncedRecord
    from brokers.log.segment import OpenSegments, Segment
    from brokers.log.writing import Writing


class Syncing:
    """One log's. Before `synced_offset` all is on the disk; segments before `recovered_offset` need no scan at the next
    start, once the checkpoint says so (`save_checkpoint`, which raises OSError)."""

    __slots__ = (
        "_active", "_directory", "_failed", "_files", "_generation", "_names_unsynced", "_record", "_save_checkpoint",
        "_unsynced", "_writing", "closed", "open_segments", "recovered_offset", "synced_offset",
    )  # fmt: skip

    def __init__(
        self, recovery: Recovery, open_segments: OpenSegments, writing: Writing, save_checkpoint: Callable[[], None]
    ) -> None:
        self._files: Files = recovery.files
        self._directory: Path = recovery.directory
        self._record: SyncedRecord = recovery.synced
        self._writing = writing
        self._save_checkpoint = save_checkpoint
        self.open_segments = open_segments
        self.synced_offset = recovery.promised_offset
        self.recovered_offset = recovery.recovered_offset
        self._active = recovery.segments[-1]  # the one that grows
        sealed = [segment for segment in recovery.segments[:-1] if segment.end_offset > self.recovered_offset]
        self._unsynced = [*sealed, self._active]
        self._names_unsynced = True
        self._generation = 0
        self._failed = False
        self.closed = False

    def begin(self, *, sealed_only: bool = False) -> Flush | None:
        """The files to sync now; None when there are none. Run it anywhere, then hand it to `end`.

        One at a time. `sealed_only` leaves the growing segment alone: under `fsync: never` it shortens the scan after
        a crash without ever syncing what is being written.
        """
        if self._failed:
            raise LogSyncFailed(self._writing.refusal)
        if self.closed:
            raise LogClosed(f"{self._directory} is closed")
        segments = [segment for segment in self._unsynced if not (sealed_only and segment is self._active)]
        if not segments or (self.synced_offset == self._active.end_offset and not self._names_unsynced):
            return None
        directory = self._directory if self._names_unsynced else None
        handles, directory_handle = flush_handles(self._files, segments, self.open_segments, self._record, directory)
        end_offset = segments[-1].end_offset
        return Flush(self._files, handles, segments, directory_handle, end_offset, self._generation)

    def end(self, flush: Flush) -> None:
        """Note what was synced, in the log's record of it before anybody is told.

        LogSyncFailed when the disk failed, after which the log refuses writes for good.
        """
        if self.closed:
            return  # nobody relies on what would be noted, and its folder may be another's by now
        if flush.error is not None:
            self._failed = True
            raise LogSyncFailed(self._writing.end(f"a sync failed: {flush.error}")) from flush.error
        if flush.generation != self._generation:
            return  # the log was cut in between: these offsets may be other batches by now
        self._names_unsynced &= flush.directory is None
        self._note(flush.end_offset)
        done = {segment for segment in flush.segments if segment.end_offset <= flush.end_offset} - {self._active}
        if done:  # sealed, and nothing was added to them since the flush began
            self._unsynced = [segment for segment in self._unsynced if segment not in done]
            self.recovered_offset = self._unsynced[0].base_offset
            with suppress(LogRefusesForNow, LogRefusesWrites):  # of no concern to who waits for the sync
                self._writing.prepare("note what is synced", self._save_checkpoint)

    def _note(self, offset: int) -> None:
        if offset <= self.synced_offset:
            return
        try:
            self._record.write(offset)
        except OSError as error:
            if is_passing(error):
                raise LogNotSynced(f"{self._directory}: cannot note what is synced: {error}") from error
            self._failed = True
            raise LogSyncFailed(self._writing.end(f"cannot note what is synced: {error}")) from error
        self.synced_offset = offset

    def flush(self) -> None:
        """Sync everything now, blocking."""
        flush = self.begin()
        if flush is not None:
            flush.run()
            self.end(flush)

    def rolled(self, active: Segment) -> None:
        """This segment is the one that grows from now on."""
        self._active = active
        self._unsynced.append(active)
        self._names_unsynced = True

    def removed(self, segment: Segment) -> None:
        self._unsynced = [unsynced for unsynced in self._unsynced if unsynced is not segment]

    def begin_cut(self, last: Segment, offset: int, *, durable: bool) -> None:
        """Promise no more than what stays: no flush that is under way counts, and `last` is the one that grows. The
        checkpoint is saved before the record is lowered, and both before anything is cut; OSError."""
        self._generation += 1
        self.recovered_offset = min(self.recovered_offset, last.base_offset)
        self._save_checkpoint()
        self._record.lower(offset, durable=durable)

    def end_cut(self, last: Segment, offset: int) -> None:
        self.synced_offset = min(self.synced_offset, offset)
        self.removed(last)
        self.rolled(last)

    def close(self) -> None:
        """Nothing is synced any more."""
        self._generation += 1
        self.closed = True
        self._record.close()
