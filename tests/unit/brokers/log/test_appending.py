"""What an append promises, and what it refuses."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.log.config import FsyncPolicy
from brokers.log.errors import LeaderEpochStale, LogClosed, LogOffsetOutOfRange, LogRefusesWrites
from brokers.log.log import Log
from brokers.wire.batch import decode_records, parse_header
from tests.unit.brokers.log.batches import SMALL, Written, batch, everything, offsets, opened, row
from tests.unit.brokers.log.faulty_files import FaultyFiles

DURABLE = replace(SMALL, fsync=FsyncPolicy.ALWAYS)


def test_batches_of_one_call_get_offsets_one_behind_the_other(tmp_path: Path) -> None:
    log = opened(tmp_path)
    assert log.append([batch(b"a", b"b"), batch(b"c"), batch(b"d", b"e")], 0) == [0, 2, 3]
    assert log.append([batch(b"f")], 0) == [5]
    assert log.end_offset == 6


def test_a_stored_batch_differs_from_the_sent_one_by_offset_and_epoch_alone(tmp_path: Path) -> None:
    log = opened(tmp_path)
    sent = bytes(batch(b"payload", b"more")[0])
    log.append([batch(b"x"), batch(b"payload", b"more")], leader_epoch=7)
    stored = log.reader.read(1, 10_000)
    assert (parse_header(stored).base_offset, parse_header(stored).leader_epoch) == (1, 7)
    assert stored[16:] == sent[16:]
    assert [record.value for record in decode_records(stored)] == [b"payload", b"more"]


def test_more_batches_than_one_system_call_takes_are_all_appended(tmp_path: Path) -> None:
    log = opened(tmp_path, replace(SMALL, segment_bytes=1 << 20))
    made = [batch(b"%d" % number) for number in range(2500)]
    assert log.append(made, 0) == list(range(2500))
    assert everything(log, 100_000) == [bytes(data) for data, _ in made]


def test_an_empty_call_appends_nothing(tmp_path: Path) -> None:
    log = opened(tmp_path)
    assert log.append([], 0) == []
    assert log.end_offset == 0


def test_a_batch_larger_than_a_segment_gets_one_of_its_own(tmp_path: Path) -> None:
    written = Written(opened(tmp_path))
    for value in (b"small", b"x" * 2000, b"small"):
        written.append(value)
    assert len(list(tmp_path.glob("*.log"))) == 3
    assert everything(written.log) == written.batches


def test_a_lower_leader_epoch_is_refused_and_nothing_is_appended(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append([batch()], 5)
    with pytest.raises(LeaderEpochStale):
        log.append([batch()], 4)
    assert log.end_offset == 1
    assert log.epochs.latest == 5


def test_an_epoch_that_was_known_when_the_log_was_opened_costs_the_first_append_no_sync(tmp_path: Path) -> None:
    """The event loop would wait for it, once for each partition of a topic."""
    for epoch in (3, 4):
        files = FaultyFiles()
        log = Log.open(tmp_path, DURABLE, now_ms=1000, files=files, leader_epoch=epoch)
        assert log.epochs.latest == epoch
        done = len(files.calls)
        log.append([batch()], epoch)
        assert files.calls[done:] == ["writev"]
        with pytest.raises(LeaderEpochStale):
            log.append([batch()], epoch - 1)
        assert log.close()
    again = opened(tmp_path)
    assert again.epochs.end_of(3, again.end_offset) == (3, 1)


def test_a_closed_log_refuses_everything_and_stays_closed(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append([batch()], 0)
    assert log.close()
    with pytest.raises(LogRefusesWrites):
        log.append([batch()], 0)
    with pytest.raises(LogClosed):
        log.reader.read(0, 100)
    with pytest.raises(LogClosed):
        log.syncing.begin()
    with pytest.raises(LogClosed):
        log.reader.batch_for_timestamp(0)
    with pytest.raises(LogClosed):
        log.retain(now_ms=0)
    with pytest.raises(LogRefusesWrites):
        log.truncate_to(0)
    assert not log.close()


@pytest.mark.parametrize("ended", [Log.close, Log.abandon])
def test_a_log_that_has_ended_touches_nothing_of_another_one_in_its_place(
    tmp_path: Path, ended: Callable[[Log], object]
) -> None:
    """As maintenance did, which waited for a sync while a topic was deleted and made again."""
    former = Written(opened(tmp_path / "log", replace(DURABLE, retention_bytes=1)))
    for _ in range(20):
        former.append(b"x" * 50)
    flush = former.log.syncing.begin(sealed_only=True)
    assert flush is not None
    flush.run()
    ended(former.log)
    (tmp_path / "log").rename(tmp_path / "former")
    present = Written(opened(tmp_path / "log", DURABLE))
    for _ in range(20):
        present.append(b"y" * 50)
    before = {path.name: path.read_bytes() for path in (tmp_path / "log").iterdir()}
    former.log.syncing.end(flush)
    with pytest.raises(LogClosed):
        former.log.retain(now_ms=0)
    assert {path.name: path.read_bytes() for path in (tmp_path / "log").iterdir()} == before


def test_reading_before_the_start_or_behind_the_end_names_both(tmp_path: Path) -> None:
    log = opened(tmp_path)
    with pytest.raises(LogOffsetOutOfRange, match="offset 1 is outside 0 to 0"):
        log.reader.read(1, 100)


def test_epochs_tell_a_follower_where_each_of_them_ended(tmp_path: Path) -> None:
    written = Written(opened(tmp_path))
    assert written.log.epochs.end_of(3, written.log.end_offset) == (-1, 0)
    for epoch in (1, 1, 4, 4, 4, 6):
        written.append(b"v", epoch=epoch)
    for log in (written.log, reopened(written, tmp_path)):
        answers = {epoch: log.epochs.end_of(epoch, log.end_offset) for epoch in (0, 1, 3, 4, 5, 6, 9)}
        assert answers == {0: (-1, 0), 1: (1, 2), 3: (1, 2), 4: (4, 5), 5: (4, 5), 6: (6, 6), 9: (6, 6)}


def reopened(written: Written, directory: Path) -> Log:
    written.log.close()
    return opened(directory)


def test_truncating_takes_epochs_back_with_it(tmp_path: Path) -> None:
    written = Written(opened(tmp_path))
    for epoch in (1, 1, 4):
        written.append(b"v", epoch=epoch)
    assert written.log.truncate_to(2) == 2
    assert written.log.epochs.latest == 1
    assert written.append(b"v", epoch=2) == 2
    assert written.log.epochs.end_of(1, written.log.end_offset) == (1, 2)


def test_truncating_inside_a_batch_takes_the_whole_batch(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append([batch(b"a"), batch(b"b", b"c", b"d")], 0)
    assert log.truncate_to(3) == 1
    assert log.end_offset == 1


def test_retention_by_bytes_keeps_at_least_so_many_and_never_the_growing_segment(tmp_path: Path) -> None:
    written = Written(opened(tmp_path, replace(SMALL, retention_bytes=1)))
    for _ in range(30):
        written.append(b"x" * 50)
    assert written.log.retain(now_ms=0) > 0
    assert len(list(tmp_path.glob("*.log"))) == 1
    assert written.log.end_offset == 30
    assert everything(written.log) == written.batches[written.log.start_offset :]


def test_retention_by_time_removes_only_segments_whose_last_record_is_too_old(tmp_path: Path) -> None:
    log = opened(tmp_path, replace(SMALL, retention_ms=1000))
    for timestamp in range(0, 3000, 100):
        log.append([batch(b"x" * 50, timestamp=timestamp)], 0)
    log.retain(now_ms=2500)
    assert 8 <= log.start_offset <= 15
    removed = log.retain(now_ms=2500)
    assert removed == 0


@pytest.mark.parametrize("bound", [{"retention_ms": 1}, {"retention_bytes": 0}])
def test_whatever_retention_asks_for_the_growing_segment_stays(tmp_path: Path, bound: dict[str, int]) -> None:
    written = Written(opened(tmp_path, replace(SMALL, **bound)))  # type: ignore[arg-type] # whole numbers
    written.append(b"old")
    for _ in range(2):
        assert written.log.retain(now_ms=10**15) == 0
    written.append(b"new")
    assert everything(written.log) == written.batches


def test_records_without_a_timestamp_outlive_retention_by_time(tmp_path: Path) -> None:
    log = opened(tmp_path, replace(SMALL, retention_ms=1))
    for _ in range(30):
        log.append([batch(b"x" * 50, timestamp=-1)], 0)
    assert log.retain(now_ms=10**15) == 0


def test_a_timestamp_finds_the_first_batch_that_is_not_older(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for timestamp in range(0, 3000, 100):
        assert offsets(log.append([batch(b"x" * 20, timestamp=timestamp)], 0)) == [timestamp // 100]
    for _ in range(2):
        found = [log.reader.batch_for_timestamp(timestamp) for timestamp in (0, 1101, 2900)]
        assert [parse_header(data or b"").base_offset for data in found] == [0, 12, 29]
        assert log.reader.batch_for_timestamp(2901) is None
        log.close()
        log = opened(tmp_path)


def test_sealed_segments_share_a_bounded_number_of_open_files(tmp_path: Path) -> None:
    written = Written(opened(tmp_path))
    for _ in range(60):
        written.append(b"x" * 50)
    assert everything(written.log) == written.batches
    assert len(list(tmp_path.glob("*.log"))) > 10
    assert len(written.log._open_segments) == 3
    assert sum(segment.handle >= 0 for segment in written.log._segments) == 4


@pytest.mark.parametrize("interval_bytes", [1, 100, 250, 10_000])
@pytest.mark.parametrize("segment_bytes", [600, 5_000, 1 << 20])
def test_a_row_leaves_the_files_that_its_batches_leave_one_by_one(
    tmp_path: Path, interval_bytes: int, segment_bytes: int
) -> None:
    config = replace(SMALL, segment_bytes=segment_bytes, index_interval_bytes=interval_bytes)
    together, one_by_one = opened(tmp_path / "together", config), opened(tmp_path / "one", config)
    for read in range(6):
        values = [b"%05d" % (100 * read + number) for number in range(7)]
        # Timestamps that do not only grow.
        offsets_of_row = together.append_row(row(*values, timestamp=5_000 - 700 * read), 3)
        batches = [batch(value, timestamp=5_000 - 700 * read + n) for n, value in enumerate(values)]
        assert list(offsets_of_row) == one_by_one.append(batches, 3)
        for log in (together, one_by_one):
            log.append([batch(b"between", b"two records")], 3)
    assert together.close()
    assert one_by_one.close()
    files = {path.name: path.read_bytes() for path in (tmp_path / "together").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert any(name.endswith(".index") for name in files)


def test_a_row_is_refused_as_batches_are(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append([batch(b"v")], 5)
    with pytest.raises(LeaderEpochStale):
        log.append_row(row(b"a", b"b"), 4)
    log.close()
    with pytest.raises(LogRefusesWrites):
        log.append_row(row(b"a", b"b"), 5)
    assert log.end_offset == 1
