"""A disk that fails: what was promised stays, what was refused is not there, and the log says so."""

import errno
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.log.config import FsyncPolicy, LogConfig
from brokers.log.errors import (
    LeaderEpochStale,
    LogChangeUncertain,
    LogDiskFailed,
    LogNotSynced,
    LogRefusesForNow,
    LogRefusesWrites,
    LogSyncFailed,
    LogUnreadable,
)
from brokers.log.log import Log
from brokers.notices import Notices
from tests.unit.brokers.log.batches import SMALL, Written, abandon, batch, everything, opened, row
from tests.unit.brokers.log.faulty_files import Death, FaultyFiles

DURABLE = replace(SMALL, fsync=FsyncPolicy.ALWAYS)


def written_log(directory: Path, files: FaultyFiles) -> Written:
    """A log with three batches in its only segment."""
    written = Written(opened(directory, files=files))
    for value in (b"one", b"two", b"three"):
        written.append(value)
    return written


def assert_only_reads_go_on(written: Written) -> None:
    assert everything(written.log) == written.batches
    with pytest.raises(LogRefusesWrites):
        written.log.append([batch(b"later")], 0)
    with pytest.raises(LogRefusesWrites):
        written.log.truncate_to(0)


def assert_a_restart_finds_the_same(written: Written, directory: Path, files: FaultyFiles) -> None:
    files.heal()
    abandon(written.log)
    written.log = opened(directory, files=files)
    assert everything(written.log) == written.batches
    written.append(b"healthy again")
    assert everything(written.log) == written.batches


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS, errno.EFBIG])
def test_a_write_error_undoes_the_append_and_ends_writing(tmp_path: Path, error: int) -> None:
    files = FaultyFiles()
    written = written_log(tmp_path, files)
    files.fail("writev", error=error)
    with pytest.raises(LogRefusesWrites) as refusal:
        written.log.append([batch(b"lost")], 0)
    assert refusal.value.definite
    files.heal()
    assert_only_reads_go_on(written)
    assert_a_restart_finds_the_same(written, tmp_path, files)


def assert_writing_comes_back(written: Written, directory: Path, files: FaultyFiles) -> None:
    files.heal()
    assert everything(written.log) == written.batches
    written.append(b"when there was room again")
    assert everything(written.log) == written.batches
    assert_a_restart_finds_the_same(written, directory, files)


def test_a_row_that_is_written_in_part_is_undone_whole(tmp_path: Path) -> None:
    files = FaultyFiles()
    written = written_log(tmp_path, files)
    made = row(b"lost", b"lost", b"lost")
    files.short_to = made.header.size + 20
    with pytest.raises(LogRefusesForNow):
        written.log.append_row(made, 0)
    assert_writing_comes_back(written, tmp_path, files)


@pytest.mark.parametrize("written_bytes", [0, 1, 61, 100, 160])
def test_a_short_write_is_cut_back_however_much_of_it_was_written(tmp_path: Path, written_bytes: int) -> None:
    files = FaultyFiles()
    written = written_log(tmp_path, files)
    size = (tmp_path / f"{0:020}.log").stat().st_size
    files.short_to = written_bytes
    with pytest.raises(LogRefusesForNow, match=f"short write, {written_bytes} of"):
        written.log.append([batch(b"lost"), batch(b"lost too"), batch(b"and this")], 0)
    assert (tmp_path / f"{0:020}.log").stat().st_size == size
    assert_writing_comes_back(written, tmp_path, files)


PASSING = [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT]


@pytest.mark.parametrize("error", PASSING)
@pytest.mark.parametrize("call", ["writev", "open_append", "open_replace", "rename", "open_directory"])
@pytest.mark.parametrize("config", [SMALL, DURABLE])
def test_what_may_pass_by_itself_is_refused_for_now_and_the_next_append_is_tried(
    tmp_path: Path, call: str, error: int, config: LogConfig
) -> None:
    """A new epoch, a new segment and a write: each of them may be what fails."""
    files = FaultyFiles()
    written = Written(opened(tmp_path, config, files))
    written.append(b"x" * 300)
    files.fail(call, error=error)
    with suppress(LogRefusesForNow):
        written.append(b"x" * 400, epoch=3)
    files.heal()
    assert written.log.writing.refusal is None
    written.append(b"y" * 500, epoch=3)
    written.log.syncing.flush()
    with pytest.raises(LeaderEpochStale):
        written.append(b"of the former leader", epoch=2)
    assert everything(written.log) == written.batches
    abandon(written.log)
    written.log = opened(tmp_path, config)
    assert everything(written.log) == written.batches
    assert not written.log.recovery.cuts


def test_an_idempotent_batch_that_was_refused_for_now_is_stored_when_it_is_sent_again(tmp_path: Path) -> None:
    files = FaultyFiles()
    written = written_log(tmp_path, files)
    for _ in range(2):
        files.fail("writev", error=errno.ENOSPC)
        sent = [batch(b"one", producer=(7, 0, 0)), batch(b"two", producer=(7, 0, 1))]
        with pytest.raises(LogRefusesForNow):
            written.log.append(sent, 0)
    files.heal()
    assert written.log.append([batch(b"one", producer=(7, 0, 0))], 0) == [3]
    files.fail("writev", error=errno.ENOSPC)
    with pytest.raises(LogRefusesForNow):
        written.log.append([batch(b"two", producer=(7, 0, 1))], 0)
    files.heal()
    assert written.log.append([batch(b"two", producer=(7, 0, 1))], 0) == [4]
    assert written.log.end_offset == 5


@pytest.mark.parametrize("call", ["duplicate", "open_directory", "open_update", "pwrite"])
def test_a_sync_that_lacks_handles_is_no_failed_sync(tmp_path: Path, call: str) -> None:
    files = FaultyFiles()
    written = Written(opened(tmp_path, DURABLE, files))
    written.append(b"appended")
    files.fail(call, error=errno.EMFILE)
    with pytest.raises(LogNotSynced) as refusal:
        written.log.syncing.flush()
    assert not refusal.value.definite
    assert written.log.syncing.synced_offset == 0
    written.append(b"more")
    files.heal()
    written.log.syncing.flush()
    assert written.log.syncing.synced_offset == 2
    assert written.log.writing.refusal is None


def test_a_start_without_handles_is_refused_and_leaves_none_open(tmp_path: Path) -> None:
    files = FaultyFiles()
    written = Written(opened(tmp_path, files=files))
    for _ in range(20):
        written.append(b"x" * 100)
    abandon(written.log)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for call in ("open_append", "open_replace", "open_read"):
        files.fail(call, error=errno.EMFILE)
        with pytest.raises(LogDiskFailed):
            opened(tmp_path, files=files)
        files.heal()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    written.log = opened(tmp_path, files=files)
    assert written.log.writing.refusal is None
    assert everything(written.log) == written.batches


def test_a_disk_that_failed_says_so_once_with_the_partition(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = FaultyFiles()
    notices = Notices()
    log = Log.open(tmp_path / "t-0", SMALL, now_ms=0, files=files, notices=notices)
    files.fail("writev", error=errno.EMFILE)
    for _ in range(3):
        with pytest.raises(LogRefusesForNow):
            log.append([batch()], 0)
    files.fail("writev", error=errno.EIO)
    for _ in range(3):
        with pytest.raises(LogRefusesWrites):
            log.append([batch()], 0)
    assert [record.getMessage().startswith(f"broker: {tmp_path / 't-0'}") for record in caplog.records] == [True, True]
    assert "Input/output error" in caplog.records[1].getMessage()
    assert notices.counts == {"writes_refused_for_now": 3, "logs_closed_for_writing": 1}


def test_an_append_that_cannot_be_undone_is_uncertain_and_never_served(tmp_path: Path) -> None:
    files = FaultyFiles()
    written = written_log(tmp_path, files)
    files.short_to = 150
    files.fail("truncate")
    with pytest.raises(LogChangeUncertain) as uncertain:
        written.log.append([batch(b"perhaps"), batch(b"perhaps not")], 0)
    assert not uncertain.value.definite
    files.heal()
    assert_only_reads_go_on(written)
    assert not written.log.close()


def test_death_in_a_write_leaves_a_tail_that_the_next_start_cuts(tmp_path: Path) -> None:
    for torn in (1, 33, 70, 71, 72, 90):
        files = FaultyFiles()
        written = written_log(tmp_path / str(torn), files)
        files.short_to, files.dies = torn, True
        with pytest.raises(Death):
            written.log.append([batch(b"torn apart while it was written")], 0)
        abandon(written.log)
        log = opened(tmp_path / str(torn))
        assert [(cut.offset, cut.bytes) for cut in log.recovery.cuts] == [(3, torn)]
        assert everything(log) == written.batches


@pytest.mark.parametrize("call", ["open_append", "open_replace", "rename"])
def test_what_an_append_has_to_prepare_may_fail_and_nothing_is_appended(tmp_path: Path, call: str) -> None:
    files = FaultyFiles()
    written = written_log(tmp_path, files)
    files.fail(call, error=errno.EIO)
    with pytest.raises(LogRefusesWrites):
        written.log.append([batch(b"x" * 590)], leader_epoch=1)  # begins an epoch and a segment
    files.heal()
    assert_only_reads_go_on(written)
    assert_a_restart_finds_the_same(written, tmp_path, files)


def test_an_index_that_cannot_be_saved_costs_nothing_but_an_open_file(tmp_path: Path) -> None:
    files = FaultyFiles()
    written = Written(opened(tmp_path, files=files))
    written.append(b"first")
    files.fail("open_replace", error=errno.ENOSPC)
    for _ in range(40):
        written.append(b"x" * 100)
    assert not list(tmp_path.glob("*.index"))
    assert everything(written.log) == written.batches
    assert_a_restart_finds_the_same(written, tmp_path, files)


def test_a_failed_sync_is_indefinite_ends_writing_and_is_never_tried_again(tmp_path: Path) -> None:
    files = FaultyFiles()
    written = Written(opened(tmp_path, DURABLE, files))
    written.append(b"appended")
    files.fail("fdatasync")
    with pytest.raises(LogSyncFailed) as failure:
        written.log.syncing.flush()
    assert not failure.value.definite
    assert written.log.syncing.synced_offset == 0
    files.heal()
    files.calls.clear()
    with pytest.raises(LogSyncFailed):
        written.log.syncing.flush()
    assert not written.log.close()
    assert "fdatasync" not in files.calls


def test_the_name_of_a_new_segment_is_synced_before_what_it_holds_counts(tmp_path: Path) -> None:
    files = FaultyFiles()
    written = Written(opened(tmp_path, DURABLE, files))
    for _ in range(10):
        written.append(b"x" * 100)
    files.fail("fsync")
    with pytest.raises(LogSyncFailed):
        written.log.syncing.flush()
    assert written.log.syncing.synced_offset == 0


def test_a_read_error_is_told_and_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    files = FaultyFiles()
    written = written_log(tmp_path, files)
    files.fail("pread")
    with pytest.raises(LogDiskFailed):
        written.log.reader.read(0, 1000)
    files.heal()
    assert everything(written.log) == written.batches
    written.append(b"writes are fine")


def test_a_file_that_shrank_underneath_is_told_and_not_served(tmp_path: Path) -> None:
    written = written_log(tmp_path, FaultyFiles())
    with (tmp_path / f"{0:020}.log").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(LogDiskFailed):
        written.log.reader.read(0, 1000)


def test_too_many_open_files_is_told_and_passes(tmp_path: Path) -> None:
    files = FaultyFiles()
    written = Written(opened(tmp_path, files=files))
    for _ in range(40):
        written.append(b"x" * 100)
    files.fail("open_read", error=errno.EMFILE)
    with pytest.raises(LogDiskFailed):
        everything(written.log)
    files.fail("duplicate", error=errno.EMFILE)
    with pytest.raises(LogNotSynced) as refusal:
        written.log.syncing.flush()
    assert not refusal.value.definite
    files.heal()
    written.log.syncing.flush()
    assert everything(written.log) == written.batches


def test_a_truncation_that_fails_half_way_is_uncertain(tmp_path: Path) -> None:
    files = FaultyFiles()
    written = written_log(tmp_path, files)
    files.fail("truncate")
    with pytest.raises(LogChangeUncertain):
        written.log.truncate_to(1)
    files.heal()
    assert_only_reads_go_on(written)


def test_a_segment_that_cannot_be_removed_stays_readable(tmp_path: Path) -> None:
    files = FaultyFiles()
    written = Written(opened(tmp_path, replace(SMALL, retention_bytes=1), files))
    for _ in range(20):
        written.append(b"x" * 100)
    files.fail("unlink", only=".log")
    with pytest.raises(LogDiskFailed):
        written.log.retain(now_ms=0)
    assert everything(written.log) == written.batches
    files.heal()
    assert written.log.retain(now_ms=0) > 0


@pytest.mark.parametrize("in_order", [True, False])
def test_a_read_only_file_system_can_be_served_from_the_start(tmp_path: Path, in_order: bool) -> None:
    files = FaultyFiles()
    written = Written(opened(tmp_path, files=files))
    for _ in range(20):
        written.append(b"x" * 100)
    if in_order:
        written.log.close()
    else:
        abandon(written.log)
        with max(tmp_path.glob("*.log")).open("ab") as file:
            file.write(b"torn")
    files.fail("make_directory", "open_append", "open_replace", "truncate", "unlink", "rename", error=errno.EROFS)
    written.log = opened(tmp_path, files=files)
    assert written.log.writing.refusal is not None
    assert_only_reads_go_on(written)
    assert not written.log.close()


def test_a_directory_that_cannot_be_read_is_a_definite_error(tmp_path: Path) -> None:
    files = FaultyFiles()
    written = written_log(tmp_path, files)
    abandon(written.log)
    files.fail("open_read")
    with pytest.raises(LogDiskFailed):
        opened(tmp_path, files=files)


def test_a_disk_that_fails_while_closing_costs_a_scan_and_nothing_else(tmp_path: Path) -> None:
    files = FaultyFiles()
    written = written_log(tmp_path, files)
    files.fail("open_replace", error=errno.ENOSPC)
    assert not written.log.close()
    files.heal()
    written.log = opened(tmp_path, files=files)
    assert not written.log.recovery.clean
    assert everything(written.log) == written.batches


def test_a_read_error_under_a_doubted_segment_is_not_taken_for_damage(tmp_path: Path) -> None:
    files = FaultyFiles()
    written = written_log(tmp_path, files)
    written.log.close()
    log = opened(tmp_path, files=files)
    files.fail("pread")
    with pytest.raises(LogDiskFailed):
        log.reader.read(0, 1000)
    files.heal()
    assert everything(log) == written.batches
    assert not isinstance(LogDiskFailed(), LogUnreadable)
